//! PURE. What to do next, and when.
//!
//! Every decision is a value: time and events go in, actions come out. Nothing in this room reads a clock, opens a
//! socket, or rolls dice that it was not handed. The same code therefore runs on real sockets, in a test with a
//! hundred thousand random schedules, and in virtual time.
//!
//! - [`nanos`]: time since the start of a run
//! - [`dice`]: seeded randomness that never changes between versions
//! - [`patience`]: how long a server waits for the other end of a connection
//! - [`schedule`]: when arrivals of an open loop are meant to start
//! - [`users`]: when the users of a closed loop start
//! - [`source`]: which request to send next
//! - [`deal`]: which part of a plan is whose, of agents and threads
//! - [`offset`]: how far another machine's clock is from ours
//! - [`delay`]: how long a service that we play takes
//! - [`marking`]: how many jobs are marked as sent ahead of it, where a mark takes a journey
//! - [`mix`]: what becomes of a request: good, garbage, an error, a reset, ...
//! - [`phases`]: what a service is like over time
//! - [`station`]: a service that can do only so much at a time
//! - [`words`]: how people write times, stages and kinds of arrivals
//! - [`limit`]: how a service limits the rate of its callers
//! - [`dispatch`]: which job is sent now, by which key, and what becomes of it
//! - [`window`]: when a key may send next, so that no limit is overrun as the server counts it
//! - [`pace`]: how fast a service that declares no limit lets a key send, learnt from its responses
//! - [`ownership`]: which keys are ours, when several senders share them
//! - [`nonce`]: numbers that only grow
//! - [`feedback`]: what answers say about limits
//! - [`account`]: what a rate-limited service makes of a key's requests
//! - [`policy`]: what a call may do for its answer
//! - [`grpc`]: gRPC's statuses, and what of HTTP stands for each
//! - [`hedge`]: one call and its attempts: what to launch, what to cancel, what to answer
//! - [`backoff`]: how long to wait before each retry
//! - [`budget`]: what all extra attempts together may come to
//! - [`throttle`]: which calls an upstream that says that it is overloaded is spared
//! - [`breaker`]: when an upstream that fails gets no calls at all
//! - [`callers`]: how much each caller may send
//! - [`portion`]: which part of each limit is ours, when several gates share them
//! - [`shares`]: whether a caller's claim of a high priority is honoured
//! - [`recent`]: how long calls took of late
//! - [`hosts`]: which of several hosts gets an attempt
//! - [`deadline`]: how the time that is left is written in headers
//! - [`admit`]: whether a call may go to its upstream now, waits, or is refused
//! - [`feed`]: one thread's share of a plan: what a free connection does now

pub mod account;
pub mod admit;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod callers;
pub mod deadline;
pub mod deal;
pub mod delay;
pub mod dice;
pub mod dispatch;
pub mod feed;
pub mod feedback;
pub mod grpc;
pub mod hedge;
pub mod hosts;
pub mod limit;
pub mod marking;
pub mod mix;
pub mod nanos;
pub mod nonce;
pub mod offset;
pub mod ownership;
pub mod pace;
pub mod patience;
pub mod phases;
pub mod policy;
pub mod portion;
pub mod recent;
mod roster;
pub mod schedule;
pub mod shares;
pub mod source;
pub mod station;
mod stretches;
pub mod throttle;
pub mod users;
pub mod window;
pub mod words;

pub use nanos::{Nanos, WallNanos};

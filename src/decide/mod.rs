//! PURE. Every decision: what to do next, and when.
//!
//! A decision is a value: time and events go in, actions come out. Nothing in this module reads a clock, opens a socket,
//! or draws random numbers but from a stream that was passed in. The same code therefore runs on real sockets, in tests
//! with a hundred thousand random schedules, and in virtual time.
//!
//! Basics:
//! - [`nanos`]: time since the start of a run
//! - [`dice`]: seeded random numbers that are the same in every version
//! - [`words`]: notation of times, stages and arrival processes
//!
//! Load generation:
//! - [`schedule`]: intended starts of the arrivals of an open loop
//! - [`users`]: starts of the users of a closed loop
//! - [`source`]: the request of an arrival
//! - [`deal`]: division of a load among agents and threads
//! - [`offset`]: offset between two machines' clocks
//! - [`feed`]: what a free connection sends now
//!
//! Calls:
//! - [`policy`]: deadline, hedging, retries and budget of a call, as data
//! - [`hedge`]: one call and its attempts: what to launch and cancel, and the verdict
//! - [`backoff`]: delays before retries
//! - [`budget`]: bound on all extra attempts together
//! - [`recent`]: quantiles of recent response times
//! - [`deadline`]: remaining time in headers
//! - [`grpc`]: gRPC codes and the HTTP statuses that correspond to them
//!
//! Protection of upstreams:
//! - [`admit`]: overload protection: a call runs, waits for a slot, or is rejected
//! - [`throttle`]: client-side throttling
//! - [`breaker`]: circuit breaker
//! - [`hosts`]: load balancing and outlier detection
//! - [`callers`]: rate limits per caller
//! - [`shares`]: fairness of high priorities
//! - [`portion`]: limits shared by several gateways
//!
//! Delivery of jobs:
//! - [`dispatch`]: which job is sent now, by which key, and its outcome
//! - [`window`]: when a key may send next, so that no limit is exceeded as the server counts it
//! - [`pace`]: send rate where a service reports no limit, learnt from its responses
//! - [`ownership`]: leases of keys that several senders share
//! - [`nonce`]: ascending numbers
//! - [`feedback`]: limits that responses report
//! - [`marking`]: number of jobs to mark as sent ahead of time
//!
//! Test services:
//! - [`delay`]: distributions of delays
//! - [`mix`]: good responses and failures, by weight
//! - [`phases`]: schedule of behaviours
//! - [`station`]: a service of limited capacity
//! - [`limit`]: rate-limit algorithms of services
//! - [`account`]: quota of one key
//! - [`patience`]: timeouts of a server's connections

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

//! weir finds out how much load an HTTP service can take.
//!
//! One idea: *decide pure, act at the edge*. Decisions and measures are plain values that take time and events as
//! arguments; edges read the clock, move bytes and ask them what to do.
//!
//! The rooms, and who may import whom (`tests/arrows.rs` holds it):
//!
//! ```text
//! cli ──► live ─────────────────────► measure, decide
//!  │ ├──► study ─► agents, load, report ─► document, machine, measure, decide
//!  │ ├──► capacity ─► agents, load, machine, measure, decide
//!  │ ├──► agents ─► load, machine, measure, decide
//!  │ ├──► simulate ─────────────────► decide
//!  │ ├──► load ──► report ──────────► measure, decide
//!  │ │      └────► http ────────────► machine, decide
//!  │ ├──► serve ─► server ──────────► machine, decide
//!  │ ├──► gate ──► server, call, http, document, redis
//!  │ │                     └────────► http, machine, decide
//!  │ └──► send ──► call, http, redis, machine, decide
//!  │                            └───► http
//!  └────────────► machine ──────────► measure, decide
//! ```
//!
//! - [`decide`] PURE: when to send ([`decide::schedule`], [`decide::users`]), what ([`decide::source`]), and what a
//!   free connection does now ([`decide::feed`])
//! - [`measure`] PURE: one request's record ([`measure::Outcome`]), histograms, the run, trust, objectives
//! - [`simulate`] PURE: overload in virtual time: callers, gates, an upstream, and what comes of it
//! - [`study`] which variant is better: starts each again and again, drives the same load at it, compares
//! - [`document`] a file in TOML that a person wrote: typed reading, mistakes told by place
//! - [`http`] bytes on sockets: wire format, TLS, one non-blocking connection; and connections to upstreams, kept
//! - [`call`] one call and its attempts, under deadline, hedge, retry and budget
//! - [`gate`] a gateway: an answer in time, whatever the upstream does
//! - [`send`] jobs to deliver through the limits of a service: a durable queue, and the sender
//! - [`redis`] a Redis server: its address, a connection, what it says
//! - [`load`] drives a plan: an event loop per thread
//! - [`agents`] several processes, here or on a cluster, that drive one plan together
//! - [`capacity`] drives load after load until it is known how much a service can take
//! - [`report`] a run as text, ab, wrk, JMeter, JSON, CSV, JTL, and as a page to look at
//! - [`live`] the run while it goes
//! - [`serve`] services that misbehave on purpose: what each of them answers, and when
//! - [`server`] what a service stands on: event loops, connections, patience, exact timers, access log, metrics
//! - [`machine`] clocks, cores, open files
//! - [`cli`] arguments to a checked plan
//!
//! One request's journey in `weir load`: the command line becomes [`load::Options`], checked into a [`load::LoadPlan`].
//! [`load::run`] starts workers. A worker asks its [`decide::feed::Feed`] what to start, writes bytes that were built
//! before the run ([`http::wire::WireRequest`]), feeds what comes back to a [`http::wire::Decoder`], and hands the
//! [`measure::Outcome`] to its [`measure::Recorder`]. All recorders together become a [`measure::Run`], which
//! [`report`] shows.

pub mod agents;
pub mod call;
pub mod capacity;
pub mod cli;
pub mod decide;
pub mod document;
pub mod gate;
pub mod http;
pub mod live;
pub mod load;
pub mod machine;
pub mod measure;
pub mod redis;
pub mod report;
pub mod send;
pub mod serve;
pub mod server;
pub mod simulate;
pub mod study;

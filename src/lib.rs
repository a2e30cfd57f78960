//! weir finds out how much load an HTTP service can take, protects services (`weir gate`), and delivers jobs through
//! rate limits (`weir send`).
//!
//! One idea: *decide pure, act at the edge*. Decisions and measurements are plain values that take time and events as
//! arguments; edges read the clock, move bytes and call them. `docs/design` has the reasons, `docs/glossary.md` the
//! terms.
//!
//! Four products stand on one floor, each in its folder. An arrow leads to what a crate depends on; all may use what is
//! in `crates/base`, which is left out. `load`, `gate` and `send` never name one another. A pure crate has no clock, no
//! socket, no file and no thread.
//!
//! # The crates
//!
//!
//! # The path of a request
//!
//! In `weir load` the command line becomes [`load::Options`], checked into a
//! [`load::LoadPlan`]. [`load::run`] starts workers. A worker gets from its [`pace::feed::Feed`] what to start,
//! writes bytes that were built before the run ([`net::wire::WireRequest`]), passes received bytes to a
//! [`net::wire::Decoder`], and records the [`measure::Outcome`] in its [`measure::Recorder`]. All recorders together
//! become a [`measure::Run`], which [`report`] renders.

pub use weir_agents as agents;
pub use weir_base as base;
pub use weir_call as call;
pub use weir_capacity as capacity;
pub use weir_cli as cli;
pub use weir_delivery as delivery;
pub use weir_document as document;
pub use weir_events as events;
pub use weir_gate as gate;
pub use weir_histogram as histogram;
pub use weir_history as history;
pub use weir_http2 as http2;
pub use weir_hurl as hurl;
pub use weir_import as import;
pub use weir_json as json;
pub use weir_limits as limits;
pub use weir_llm as llm;
pub use weir_load as load;
pub use weir_lua as lua;
pub use weir_machine as machine;
pub use weir_measure as measure;
pub use weir_net as net;
pub use weir_outputs as outputs;
pub use weir_pace as pace;
pub use weir_page as page;
pub use weir_record as record;
pub use weir_redis as redis;
pub use weir_replay as replay;
pub use weir_report as report;
pub use weir_request as request;
pub use weir_resilience as resilience;
pub use weir_retry as retry;
pub use weir_scenario as scenario;
pub use weir_send as send;
pub use weir_send_file as send_file;
pub use weir_serve as serve;
pub use weir_server as server;
pub use weir_session as session;
pub use weir_simulate as simulate;
pub use weir_study as study;
pub use weir_telemetry as telemetry;
pub use weir_terminal as terminal;
pub use weir_web as web;
pub use weir_workload as workload;

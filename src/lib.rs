//! weir finds out how much load an HTTP service can take, protects services (`weir gate`), and delivers jobs through
//! rate limits (`weir send`).
//!
//! One idea: *decide pure, act at the edge*. Decisions and measurements are plain values that take time and events as
//! arguments; edges read the clock, move bytes and call them. `docs/design` has the reasons, `docs/glossary.md` the
//! terms.
//!
//! The crates and their dependencies:
//!
//! ```text
//! cli ──► session ► agents, capacity, history, load, otlp, outputs, report, server, terminal, web, machine, measure, decide
//!  │ ├──► terminal ► measure, decide
//!  │ ├──► history ─► report ─────────► machine, measure, decide
//!  │ ├──► web ───► server, report, page, load, machine, measure, decide
//!  │ ├──► otlp ───► server, http, machine, decide
//!  │ ├──► outputs ► server, http, machine, measure, decide
//!  │ ├──► bulk ──► send, terminal, machine, measure, decide
//!  │ ├──► study ─► agents, load, report ─► document, machine, measure, decide
//!  │ ├──► capacity ─► agents, load, machine, measure, decide
//!  │ ├──► agents ─► load, machine, measure, decide
//!  │ ├──► simulate ─────────────────► decide
//!  │ ├──► report ─► page ───────────► measure, decide
//!  │ ├──► llm ───► load, http, machine, measure ► events, json, decide
//!  │ ├──► replay ► load, http, machine, measure ► decide
//!  │ ├──► lua ───► load, scenario, http, machine, measure, decide
//!  │ ├──► load ──► scenario, hurl, events, document, http, http2, machine, measure, decide
//!  │ ├──► record ─► import, http, machine, decide
//!  │ ├──► serve ─► server, events ──► machine, decide
//!  │ ├──► gate ──► otlp, server, page, call, http, document, redis
//!  │ │                     └────────► http, machine, decide
//!  │ └──► send ──► call, http, redis, machine, decide
//!  │                            └───► http
//!  └────────────► machine ──────────► decide
//!                 import ──────────► scenario, hurl, decide
//!                 scenario ────────► hurl, json, decide
//!                 events ──────────► json
//!                 http2
//!                 page
//! ```
//!
//! - [`decide`] PURE: every decision: what a load sends when ([`decide::load::feed`]), overload protection
//!   ([`decide::admission`]), hedges and retries ([`decide::call::hedge`]), rate limits
//!   ([`decide::delivery::key_window`]), dispatch of jobs ([`decide::delivery::dispatch`])
//! - [`measure`] PURE: the record of a request ([`measure::Outcome`]), histograms, runs, trust, objectives, comparisons
//! - [`simulate`] PURE: overload in virtual time: callers, gateways, an upstream, published limiters
//! - [`study`] studies: variants of a service started repeatedly, measured under the same load, compared
//! - [`document`] TOML configuration: typed reading, errors with their position
//! - [`http`] HTTP/1.1, HTTP/2 and TLS: wire format, the load generator's connections, the pooled client
//! - [`http2`] PURE: HTTP/2 of a client without sockets: frames, HPACK, flow control, streams
//! - [`call`] one call and its attempts, under deadline, hedging, retries and budget
//! - [`gate`] the gateway: overload protection, hedging, retries, balancing, limits shared by a cluster
//! - [`send`] the job sender: durable job stores, and delivery through the rate limits of a service
//! - [`bulk`] bulk delivery: a file of jobs in, a file of results out
//! - [`redis`] Redis client: address, connection, protocol
//! - [`hurl`] PURE: parser and printer of `.hurl` files
//! - [`scenario`] PURE: what a user does: steps as templates, captures and checks, cookies, data
//! - [`replay`] access logs as loads: readers of their lines (pure), and their requests at their recorded times
//! - [`import`] PURE: readers of files of other tools (cURL, HAR, Postman, OpenAPI, JMX ...), which become scenarios
//! - [`record`] a recording proxy: what goes through it becomes a HAR file, and with [`import`] a scenario
//! - [`json`] PURE: JSONPath and a scanner of JSON texts, without a tree
//! - [`events`] PURE: events of streamed responses; what those of language models hold
//! - [`llm`] load of language models: data sets, prompts and bodies of each API (pure), and conversations as users
//! - [`load`] the load generator: one event loop per thread
//! - [`lua`] Lua scripts with the interface of wrk as users of a load
//! - [`agents`] several processes, on one machine or many, that generate one load together
//! - [`capacity`] search for the highest load at which all objectives are met
//! - [`report`] a run as text, ab, wrk, JMeter, JSON, CSV and HTML
//! - [`page`] style and charts of all pages
//! - [`web`] page on which a load is watched and changed while it runs
//! - [`otlp`] OpenTelemetry traces: spans, and their export to a collector
//! - [`outputs`] outputs of a load while it runs: JSON lines, Prometheus, OpenTelemetry, InfluxDB, StatsD
//! - [`history`] store of saved runs, and their trends
//! - [`terminal`] what a terminal shows of a load while it runs: a line, a table, or a full-screen view
//! - [`session`] a load, search or iteration as a command runs it: files, live session, progress, outputs, exit code
//! - [`serve`] the test server: services with fault injection
//! - [`server`] HTTP server framework: event loops, connections, timeouts, exact timers, access log, metrics
//! - [`machine`] clocks, CPU cores, memory, limits of the system, child processes
//! - [`cli`] command line: arguments to checked plans
//!
//! The path of one request in `weir load`: the command line becomes [`load::Options`], checked into a
//! [`load::LoadPlan`]. [`load::run`] starts workers. A worker gets from its [`decide::load::feed::Feed`] what to start,
//! writes bytes that were built before the run ([`http::wire::WireRequest`]), passes received bytes to a
//! [`http::wire::Decoder`], and records the [`measure::Outcome`] in its [`measure::Recorder`]. All recorders together
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
pub use weir_otlp as otlp;
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
pub use weir_terminal as terminal;
pub use weir_web as web;
pub use weir_workload as workload;

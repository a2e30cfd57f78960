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
//! ## Base: `crates/base`
//!
//! What all products share and none owns: time, units, requests and whose secrets they carry, retries, rate limits as models,
//! and the machine. Decisions are pure; `machine` and `command` alone meet the system. It names no other folder.
//!
//! - [`base`], pure: Time, kinds of failures, seeded random numbers and counters, which all of weir shares
//! - [`command`]: A command as a process: its messages, stdout, exit code, interrupts, life as a server ──► base, machine, request
//! - [`document`]: TOML configuration with typed reading and errors that have a position ──► base
//! - [`histogram`], pure: Histograms of times in constant memory, and their percentiles ──► base
//! - [`limits`], pure: Models of rate limits, as services count them ──► base
//! - [`machine`]: Clocks, CPU cores, memory, limits of the system, child processes ──► base
//! - [`page`]: Style and charts of all pages: reports, and pages that change while they are open
//! - [`request`], pure: What a request may say: its URL, its framing, and whose secrets go where ──► base
//! - [`retry`], pure: Retries: which failures, after which delay, within which deadline and budget ──► base, limits
//!
//! ## Net: `crates/net`
//!
//! Bytes on sockets: HTTP/1.1, HTTP/2 and TLS of the load generator, the pooled client and the server under all services,
//! OpenTelemetry, Redis. It names base, and nothing that measures, protects or delivers.
//!
//! - [`http2`], pure: HTTP/2 of a client without sockets: frames, HPACK, flow control and streams as plain values
//! - [`net`]: HTTP/1.1, HTTP/2 and TLS: wire format, the load generator's connections, the pooled client
//! - [`redis`]: Redis client: address, connection, protocol ──► net
//! - [`server`]: HTTP server framework: event loops, connections, timeouts, timers, access log, metrics ──► net
//! - [`telemetry`]: Delivery of telemetry: messages of OpenTelemetry, receivers by HTTP, export of spans ──► net
//! - [`websocket`], pure: WebSocket without sockets: handshake, frames, compression and close as plain values, of client and server
//!
//! ## Load: `crates/load`
//!
//! Measuring a service: what is sent when (`pace`), the engine (`load`), users and their steps (`scenario`, `lua`, `k6`,
//! `llm`, `replay`, `scripts`), calls of gRPC (`grpc`), files of other tools and recordings (`import`, `scenario_files`,
//! `record`), what was measured and how far to trust it (`measure`), what readers get (`report`, `web`, `terminal`,
//! `outputs`), and one load from its files to its exit code (`session`).
//!
//! - [`agents`]: Several processes that generate one load together ──► load, measure, pace
//! - [`capacity`]: Search for the highest load at which all objectives are met ──► agents, load, measure
//! - [`events`], pure: Events of streamed responses: server-sent events, lines of JSON, chunks, and what those of language models hold ──► json
//! - [`grpc`], pure: gRPC without sockets: descriptions of services, messages as JSON, framing, statuses, reflection ──► events
//! - [`history`]: Store of saved runs: what was measured, of which commit, on which machine ──► measure, report
//! - [`hurl`], pure: Parser and printer of .hurl files: requests with templates, captures, asserts and options
//! - [`import`], pure: Readers of cURL, HAR, Postman, OpenAPI, .http, JMX and Bruno files; they become scenarios ──► hurl, scenario
//! - [`json`], pure: JSONPath and a scanner of JSON texts, without a tree
//! - [`k6`]: Scripts of k6, in JavaScript and TypeScript, as users of a load ──► load, measure, net, pace, scenario
//! - [`llm`]: Load of language models: prompts from data sets and random words, bodies for each API, conversations as users ──► events, json, load, measure, net, pace, replay
//! - [`load`]: The load generator: one event loop per thread ──► events, grpc, http2, hurl, json, measure, net, pace, scenario, websocket
//! - [`lua`]: Lua scripts with the interface of wrk as users of a load ──► load, measure, net, pace, scenario
//! - [`measure`], pure: Records of requests, histograms, runs, trust, objectives, comparisons
//! - [`outputs`]: Outputs of a load while it runs: JSON lines, Prometheus, OpenTelemetry, InfluxDB, StatsD ──► measure, net, pace, server, telemetry
//! - [`pace`], pure: Which request of a load starts when, and by whom
//! - [`record`]: A recording proxy: what goes through it becomes a HAR file, and so a scenario ──► import, net, scenario-files, server
//! - [`replay`]: Access logs (nginx, Apache, ALB, Envoy, Caddy, JSON lines) as loads: their requests at their recorded times ──► load, measure, net, pace
//! - [`report`]: A run as text, ab, wrk, JMeter, JSON, CSV and HTML ──► measure
//! - [`scenario`], pure: Scenarios: steps with templates, captures and checks; cookies and data of users ──► events, hurl, json
//! - [`scenario_files`]: Files that become scenarios, and those that an import writes: scenarios, a mix, variables, rows of data ──► import, load
//! - [`scripts`]: Scripts in Lua, Python and JavaScript as users of a load, a search, a study, an agent or one iteration ──► agents, k6, llm, load, lua, measure, session
//! - [`session`]: A load, search or iteration as a command runs it: files, live session, progress, outputs, exit code ──► agents, capacity, history, load, measure, outputs, pace, report, telemetry, terminal, web
//! - [`terminal`]: Progress of a run on the terminal: a line, a table, or a full-screen view of a load ──► measure, pace
//! - [`web`]: Page on which a load is watched and changed while it runs ──► load, measure, pace, report, server
//!
//! ## Gate: `crates/gate`
//!
//! Protecting a service: decisions on overload, hedges, hosts and callers (`resilience`), one call and its attempts
//! (`call`), and the gateway that makes calls of requests (`gate`). It names neither load nor send.
//!
//! - [`call`]: One HTTP call and its attempts, under deadline, hedging, retries and budget ──► net, resilience
//! - [`gate`]: A gateway: overload protection, hedging, retries, balancing, shared limits ──► call, net, redis, resilience, server, telemetry
//! - [`resilience`], pure: Overload protection, hedging, balancing, circuit breaking and limits of callers as pure decisions
//!
//! ## Send: `crates/send`
//!
//! Delivering jobs through the limits of a service: which job, when and by which key (`delivery`), durable stores and
//! the sender (`send`), a file of jobs in and a file of results out (`send-file`); and the same limits for any code
//! (`limiter`). It names neither load nor gate.
//!
//! - [`delivery`], pure: Delivery of jobs through a service's rate limits as pure decisions
//! - [`limiter`]: Rate limits that threads, tasks, processes and machines share: who may send when ──► delivery, redis
//! - [`send`]: The job sender: durable job stores, and delivery through the rate limits of a service ──► delivery, net, redis
//! - [`send_file`]: Bulk delivery of weir send: a file of jobs in, a file of results out ──► delivery, send
//!
//! ## Lab: `crates/lab`
//!
//! Services and worlds to try the others on: how a service behaves (`workload`), the test server (`serve`), studies of
//! variants (`study`), overload in virtual time (`simulate`). It may name all products; none names it.
//!
//! - [`serve`]: The test server: services with fault injection ──► events, grpc, server, websocket, workload
//! - [`simulate`], pure: Overload in virtual time: callers, gateways, an upstream, published limiters ──► delivery, pace, resilience, workload
//! - [`study`]: Studies: variants of a service started repeatedly, measured under the same load, compared ──► agents, load, measure, report
//! - [`workload`], pure: Distributions of delays, mixes of responses, phases, and a service of limited capacity
//!
//! ## Command: `crates/cli`
//!
//! - [`cli`]: Load-test HTTP services; also a test server, a gateway and a job sender: the command ──► agents, capacity, delivery, events, gate, history, import, llm, load, measure, net, pace, record, replay, report, resilience, scenario-files, scripts, send, send-file, serve, server, session, simulate, study, terminal, web, workload
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
pub use weir_command as command;
pub use weir_delivery as delivery;
pub use weir_document as document;
pub use weir_events as events;
pub use weir_gate as gate;
pub use weir_grpc as grpc;
pub use weir_histogram as histogram;
pub use weir_history as history;
pub use weir_http2 as http2;
pub use weir_hurl as hurl;
pub use weir_import as import;
pub use weir_json as json;
pub use weir_k6 as k6;
pub use weir_limiter as limiter;
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
pub use weir_scenario_files as scenario_files;
pub use weir_scripts as scripts;
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
pub use weir_websocket as websocket;
pub use weir_workload as workload;

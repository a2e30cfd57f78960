//! PURE. Records of requests, and the figures derived from them.
//!
//! - [`time_window`]: what is measured of a run: from the end of the warm-up to its end
//! - [`outcome`]: record of one request: three clocks, outcome, bytes
//! - `packed_histogram`: histograms of a series, as their bytes
//! - [`times`]: histograms of whole responses, by all three clocks
//! - [`recorder`]: outcomes -> counts and the current interval; one per thread, not shared
//! - [`counts`]: all counts of a run or of a part of it; [`response_counts`]: by status and body length
//! - [`step_counts`]: of scenarios: iterations, and each step; [`failure_sample`]: failures of steps, for a person
//! - [`stream_timeline`]: times of one streamed response; [`stream_counts`]: of all of them;
//!   [`stream_interval`]: of an interval
//! - [`llm_timeline`]: times of one response of a language model; [`llm_counts`]: of all; [`llm_window_counts`]:
//!   what came within the window, for rates; [`goodput`]: objectives of each
//! - [`websocket_counts`]: of connections and messages of WebSocket
//! - `merge`: rules by which counts of threads, agents and intervals become one, and are checked
//! - [`interval_merger`]: merger of the intervals of several threads or agents
//! - [`agent_counts`]: figures of one agent of a run
//! - [`series`]: time series of a run, in bounded memory; [`step_series`]: of its steps; [`stream_series`]: of streams;
//!   [`websocket_series`]: of connections of WebSocket
//! - [`progress`]: progress of a run, for callbacks
//! - [`live_marks`]: what happens to a run while it goes on: objectives missed, trust lost
//! - [`recovery`]: whether a service comes back after a disturbance: phases, bounds, verdict
//! - [`rate`]: rate of requests or iterations
//! - [`run`]: result of a load test; [`run_facts`]: its assembly; [`run_steps`]: its scenarios; [`run_websocket`]: its WebSocket; `run_traffic`: its bytes per second; `saved`: reading and writing it as JSON
//! - [`steady`]: detection of the end of a warm-up by change points
//! - [`trust`]: validity of a run, and reasons against it; `lateness`: what weir's own delay distorts
//! - [`slo`]: objectives such as `p99<200ms`, met or missed
//! - [`capacity`]: highest load that meets the objectives: search, steps, scalability law
//! - [`change_points`]: where a series of results has changed its level
//! - [`compare`]: verdicts on variants that were each run several times

pub mod abort;
pub mod agent_counts;
pub mod capacity;
pub mod change_points;
pub mod compare;
pub mod counts;
pub mod end_reason;
pub mod failure_sample;
pub mod failure_text;
pub mod goodput;
pub mod http2_counts;
pub mod interval_merger;
mod lateness;
pub mod live_marks;
pub mod llm_counts;
pub mod llm_timeline;
pub mod llm_window_counts;
pub mod load_model;
pub mod main_failure;
mod merge;
pub mod outcome;
pub mod outcome_counts;
mod packed_histogram;
pub mod progress;
pub mod rate;
pub mod recorder;
pub mod recovery;
pub mod response_counts;
pub mod run;
pub mod run_changes;
pub mod run_facts;
pub mod run_http2;
pub mod run_llm;
pub mod run_replay;
pub mod run_script;
pub mod run_steps;
pub mod run_streams;
pub mod run_trace;
mod run_traffic;
mod run_trust;
pub mod run_websocket;
mod saved;
pub mod series;
pub mod slo;
pub mod steady;
pub mod step_counts;
pub mod step_series;
pub mod stolen_time;
pub mod stream_counts;
pub mod stream_interval;
pub mod stream_series;
pub mod stream_timeline;
pub mod time_window;
pub mod times;
pub mod trust;
pub mod websocket_counts;
pub mod websocket_series;

pub use counts::Counts;
pub use load_model::LoadModel;
pub use outcome::Outcome;
pub use progress::RunProgress;
pub use recorder::Recorder;
pub use run::Run;
pub use times::ResponseTimes;

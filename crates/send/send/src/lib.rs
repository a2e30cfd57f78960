//! Delivery of jobs through the rate limits of a service: a durable queue, and a sender as fast as the limits allow.
//!
//! - [`Sender`]: sends the jobs of a store, on a thread of its own
//! - [`job`]: a job, its status, its history
//! - [`state`]: states of a job
//! - [`store`]: job stores: memory, SQLite, Redis
//! - [`JobDefaults`]: jobs from defaults; [`job_parser`]: parser of jobs; [`template`]: fields of a request that are filled in at a send, and
//!   [`template_parts`]: where; [`key_hosts`]: hosts that may have keys
//! - [`queue_view`]: what is printed of a store; [`queue_change`]: changes that a person asks for
//! - [`api_key`]: API keys; [`response_rules`]: classes of responses; [`events`]: events of a sender
//!
//! [`dispatch`](weir_delivery::dispatch) decides what is sent when and with which key; a store guarantees
//! that accepted jobs survive a crash.
#![cfg_attr(
    not(all(feature = "redis", feature = "sqlite")),
    allow(dead_code, reason = "a store that is left out uses it")
)]

pub mod api_key;
mod dispatcher;
pub mod events;
mod host_limit;
pub mod job;
mod job_defaults;
pub mod job_parser;
pub mod key_hosts;
mod key_pause;
mod key_state;
mod options;
pub mod queue_change;
pub mod queue_view;
mod rendered_request;
pub mod response_rules;
mod sender;
mod sender_error;
pub mod state;
mod stop_mode;
pub mod store;
pub mod template;
pub mod template_parts;
mod wall_clock;

pub use api_key::ApiKey;
pub use dispatcher::{HostProgress, SenderProgress};
pub use events::{AttemptRecord, FinishedJob, Listener, SenderEvent};
pub use host_limit::HostLimit;
pub use job::{
    Job, JobDetail, JobEdit, JobEntry, JobEvent, JobRequest, JobStatus, MAX_JOB_EVENTS, StoredAttempt, StoredResponse,
    UnixMs,
};
pub use job_defaults::{JobDefaults, JobOverrides};
pub use key_hosts::KeyHosts;
pub use key_pause::PauseRecord;
pub use options::{Options, TtlExtensionOptions};
pub use response_rules::{ResponseCheck, ResponseRules};
pub use sender::Sender;
pub use sender_error::SenderError;
pub use state::State;
pub use template_parts::{JobBodyKind, TemplateParts};
pub use wall_clock::wall_ms;

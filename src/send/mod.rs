//! Delivery of jobs through the rate limits of a service: a durable queue, and a sender as fast as the limits allow.
//!
//! - [`Sender`]: sends the jobs of a store, on a thread of its own
//! - [`job`]: a job, its status, its history
//! - [`state`]: states of a job
//! - [`store`]: job stores: memory, SQLite, Redis
//! - [`form`]: parser of jobs; [`template`]: fields of a request that are filled in at a send
//! - [`credential`]: API keys; [`judge`]: classes of responses; [`news`]: events of a sender
//!
//! [`dispatch`](crate::decide::dispatch) decides what is sent when and with which key; a store guarantees that accepted
//! jobs survive a crash.

pub mod credential;
mod dispatcher;
mod filled;
pub mod form;
mod host_limit;
pub mod job;
pub mod judge;
pub mod news;
mod note;
mod options;
mod sender;
pub mod state;
pub mod store;
pub mod template;

pub use credential::ApiKey;
pub use dispatcher::{HostProgress, SenderProgress};
pub use form::{JobDefaults, JobOverrides};
pub use host_limit::HostLimit;
pub use job::{
    Job, JobDetail, JobEdit, JobEntry, JobEvent, JobRequest, JobStatus, StoredAttempt, StoredResponse, UnixMs,
};
pub use judge::ResponseRules;
pub use news::{AttemptRecord, FinishedJob, Listener, SenderEvent};
pub use options::{Options, TtlExtensionOptions};
pub use sender::{Sender, SenderError, wall_ms};
pub use state::State;

//! Jobs to deliver through the limits of a service: a durable queue, and a sender that goes as fast as they allow.
//!
//! - [`Sender`]: sends the jobs of a store, on a thread of its own
//! - [`job`]: one request to deliver, and what is known of it
//! - [`state`]: where a job is between its submission and its end
//! - [`store`]: where jobs are kept: in memory, or in a file
//! - [`form`]: a line of JSON -> a job; [`template`]: the fields of a request that are filled in when it is sent
//! - [`credential`]: keys; [`judge`]: what an answer means; [`news`]: what a sender tells
//!
//! What is sent when, and with which key, is decided by [`dispatch`](crate::decide::dispatch); a store keeps what it was
//! given, and tells no lie after a crash.

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

//! Changes of a job store that a person asks for: which jobs, and why some of them stay as they are.
//!
//! - [`RetryRequest`]: jobs that are queued again; [`PurgeRequest`]: jobs that are removed
//! - [`JobChanges`]: changes of one job, with its [`EditOutcome`]
//! - [`SkippedJob`]: a job that was named and stays as it is

mod job_changes;
mod purge_request;
mod retry_request;
mod skipped_job;

pub use self::job_changes::{EditOutcome, JobChanges};
pub use self::purge_request::PurgeRequest;
pub use self::retry_request::RetryRequest;
pub use self::skipped_job::{QueueChange, SkippedJob, job_name};

//! What is printed of a store and its jobs, without secrets.
//!
//! - [`StoreStatus`]: overview of a store
//! - [`job_row`] below [`JOB_HEADING`], [`job_json`]: a job; [`detail_text`], [`detail_json`]: with its history
//! - [`state_phrase`], [`job_count`]: words

mod job_view;
mod queue_words;
mod store_status;

pub use self::job_view::{JOB_HEADING, detail_json, detail_text, job_json, job_row};
pub use self::queue_words::{job_count, state_phrase};
pub use self::store_status::StoreStatus;

//! Services that misbehave on purpose: public, documented (`docs/serve.md`), seeded.
//!
//! - [`work`]: an unreliable upstream
//! - [`exchange`]: an API that limits the rate of its keys
//! - [`functions`]: computing on a pool of threads, and users' own functions in C
//! - [`sleep`]: a handler that blocks a thread beside one that waits without
//! - [`body`]: bodies to send and to take
//! - [`pool`]: the threads of those that have some; [`answers`]: what all of them answer now and then
//!
//! In a test of your own, beside it and gone with it:
//!
//! ```
//! use weir::serve::body;
//! use weir::server::{self, Options};
//!
//! let service = server::start(body::Service::new(body::Options::default())?, &Options::default())?;
//! let url = format!("{}/status/200:9,500:1", service.url());
//! # assert!(url.starts_with("http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod answers;
pub mod body;
pub mod exchange;
pub mod functions;
pub mod pool;
pub mod sleep;
pub mod work;

//! Services of the test server with fault injection (`docs/serve.md`); all random choices are seeded.
//!
//! - [`work`]: unreliable upstream
//! - [`ratelimit`]: API with rate limits per key
//! - [`functions`]: thread-pool server of built-in functions and of users' functions in C
//! - [`shop`]: shop whose protocol has rules
//! - [`sleep`]: blocking and non-blocking delays
//! - [`httpbin`]: request and response bodies of all kinds
//! - [`llm`]: language model of known times
//! - [`grpc`]: calls of gRPC that end as the request asks for
//! - [`stream`]: streams of events with known gaps
//! - [`ws`]: WebSocket server
//! - [`ServeOptions`]: a service with its server, checked and started; [`read_delay`], [`read_body`]: values as flags have
//!   them
//! - [`pool`]: thread pool of `functions` and `sleep`; [`responses`]: responses that all services share;
//!   `written_body`: bodies that a future writes; `record_log`: records of responses; [`vocabulary`]: words of texts
//!
//! A service within a test, stopped when it is dropped:
//!
//! ```
//! use weir_serve::httpbin;
//! use weir_server::{self as server, Options};
//!
//! let service = server::start(httpbin::Service::new(httpbin::Options::default())?, &Options::default())?;
//! let url = format!("{}/status/200:9,500:1", service.url());
//! # assert!(url.starts_with("http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod flag_text;
pub mod functions;
pub mod grpc;
pub mod httpbin;
pub mod llm;
mod number_range;
pub mod pool;
pub mod ratelimit;
mod record_log;
pub mod responses;
mod serve_options;
pub mod shop;
pub mod sleep;
pub mod stream;
pub mod vocabulary;
pub mod work;
mod written_body;
pub mod ws;

pub use self::flag_text::{read_body, read_delay};
pub use self::serve_options::{ServeError, ServeOptions, TestService};

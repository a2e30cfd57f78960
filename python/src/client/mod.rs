//! `Client` and `AsyncClient`: one Rust call under both.
//!
//! - [`request`]: what is asked, checked
//! - [`owner`]: what a client's calls share
//! - [`event_loop`]: tokio, turned by whoever has the time
//! - [`awaited`]: a guest of asyncio's event loop
//! - [`answer`]: how a call ended
//! - [`kin`]: what a fork must not share

pub(crate) mod answer;
pub(crate) mod awaited;
mod engine;
mod event_loop;
pub(crate) mod kin;
pub(crate) mod owner;
pub(crate) mod request;

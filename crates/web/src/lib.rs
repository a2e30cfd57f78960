//! The live page: a load is watched and changed in a browser while it runs.
//!
//! - [`LivePage`]: the page of a run: a server on a thread of its own, which takes progress and gives changes
//! - [`WebAddress`]: where it listens
//! - `live_shared`: what the run and requests share
//! - `live_store`: PURE: intervals of the run in bounded memory, and what a page that returns has missed
//! - `live_bin`: PURE: an interval as the page reads it
//! - `access`: PURE: who may read and who may change
//! - `live_service`: requests; `event_body`: the stream of events; `assets`: the files of the page
//!
//! Reasons: `docs/design/live.md`.

mod access;
mod assets;
mod event_body;
mod live_bin;
mod live_page;
mod live_service;
mod live_shared;
mod live_store;
mod web_address;

pub use self::live_page::LivePage;
pub use self::live_shared::PageSubject;
pub use self::web_address::WebAddress;

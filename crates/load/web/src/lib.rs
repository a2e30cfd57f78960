//! Pages in a browser: a load is watched and changed while it runs, and runs are started and found again.
//!
//! - [`LivePage`]: the page of a run: a server on a thread of its own, which takes progress and gives changes
//! - [`UiPage`]: the page of `weir ui`; [`UiBackend`]: what it needs of the command line
//! - [`PageListener`], [`WebAddress`]: where a page listens, and who may open it
//! - `live_shared`: what the run and requests share
//! - `live_store`: PURE: intervals of the run in bounded memory, and what a page that returns has missed
//! - `live_bin`: PURE: an interval as the page reads it
//! - `live_health`: PURE: CPU, lateness and clocks of what generates the load; events of the run
//! - `access`: PURE: who may read and who may change
//! - `page_service`, `live_service`, `ui_service`: requests; `web_reply`: what their responses share; `event_body`: the stream of
//!   events; `assets`: the files of the pages
//! - `child_run`: runs that the page has started; `event_relay`: their events and changes, passed on
//! - [`mix_text()`]: PURE: a form as a mix file
//! - `upload_folder`, `shown_documents`: files that are uploaded, and reports that a frame shows
//!
//! Reasons: `docs/design/live.md`.

mod access;
mod assets;
mod child_run;
mod event_body;
mod event_relay;
mod live_bin;
mod live_health;
mod live_page;
mod live_service;
mod live_shared;
mod live_store;
mod mix_text;
mod page_server;
mod page_service;
mod shown_documents;
mod ui_backend;
mod ui_page;
mod ui_service;
mod ui_shared;
mod upload_folder;
mod web_address;
mod web_reply;

pub use self::live_page::LivePage;
pub use self::live_shared::PageSubject;
pub use self::mix_text::{MixText, mix_text};
pub use self::page_server::PageListener;
pub use self::ui_backend::{DocumentRequest, RunCommand, RunForm, RunQuery, UiBackend};
pub use self::ui_page::{RunKiller, UiPage};
pub use self::web_address::WebAddress;

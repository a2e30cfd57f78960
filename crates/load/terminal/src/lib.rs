//! What a terminal shows of a load while it runs.
//!
//! - [`progress_bar`]: a line, or lines now and then; [`sparkline`]: a series in a line; [`step_progress`]: a table of steps
//! - [`RunView`]: PURE: what the full-screen view shows, from the intervals of the run; `view_history`: its last minutes;
//!   `agent_view`: an agent
//! - `view_layout`: PURE: the screen at any size, from `view_head`, `view_charts`, `view_tables` and `view_agents`
//! - [`ViewKey`]: PURE: keys that change the view
//! - [`TuiScreen`]: edge: the terminal's alternate screen
//!
//! Reasons: `docs/design/live.md`.

mod agent_view;

pub mod progress_bar;
mod run_view;
pub mod sparkline;
pub mod step_progress;
mod tui_screen;
mod view_agents;
mod view_charts;
mod view_head;
mod view_history;
mod view_key;
mod view_layout;
mod view_tables;

pub use self::run_view::{RunView, ViewLoad, ViewSubject};
pub use self::tui_screen::TuiScreen;
pub use self::view_key::{KeyReader, ViewKey};

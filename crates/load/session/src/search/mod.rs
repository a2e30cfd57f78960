//! Search for the highest load as a command runs it: its files, its progress, its outputs and its exit code.
//!
//! - [`search`]: a search with its progress; [`SearchOutputs`]: its files; [`conclude`], [`failure`]: its end
//! - [`SearchFeed`]: outputs while it goes on

mod search_feed;
mod search_run;

pub use self::search_feed::SearchFeed;
pub use self::search_run::{ResultRules, SearchOutputs, SearchPaths, conclude, failure, search};

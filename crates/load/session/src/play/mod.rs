//! One iteration of a scenario or a script, with each request and response, for a person or a program.
//!
//! - [`play`]: an iteration of scenarios; [`play_plan`]: of a plan; [`PlayOutput`]: what is printed of it
//! - [`play_conversation`]: messages over WebSocket
//! - `text`, `json`, `conversation_json`: requests, responses and messages as text, and as JSON

mod conversation;
mod conversation_json;
mod json;
mod play_output;
mod play_steps;
mod text;

pub use self::conversation::play_conversation;
pub use self::play_output::{PlayDetail, PlayOutput};
pub use self::play_steps::{play, play_plan};

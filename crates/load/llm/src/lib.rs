//! Load of language models: what requests ask, how each API is asked, and conversations as users of a load.
//!
//! - [`Dataset`]: prompts and conversations of a file, whose kind is detected from its content
//! - [`RandomPrompts`]: prompts of random words, by seed; [`TokenCount`]: how many
//! - [`PromptSource`]: either of them, with a prefix that prompts share
//! - [`RequestSettings`]: the API of an endpoint, and what all requests of a load have in common
//! - [`RequestBodies`]: the body of a turn, written when it is needed
//! - [`ConversationState`]: where a conversation is, and the replies that its next turn repeats
//! - [`load`]: edge: options of a load, and its conversations; all else is pure
//! - [`trace`]: traces, whose requests are replayed at their times; [`clients`]: compositions of clients, whose
//!   sessions are made up
//! - [`push_reply_text`]: text of a model's response, for the next turn or to count its tokens
//!
//! A file is stored once, as it came; what is made of it are places in its bytes. A body is written from them when it
//! is sent, so that a thousand requests of 50 KB need no 50 MB.

pub mod clients;
mod conversation_state;
mod dataset;
mod json_text;
pub mod load;
mod prompt_source;
mod random_prompts;
mod reply_text;
mod request;
mod token_count;
pub mod trace;
mod vocabulary;
mod word_text;

#[cfg(test)]
mod tests;

pub use self::conversation_state::{ConversationState, ReplySource, TurnAction};
pub use self::dataset::{Dataset, DatasetError, DatasetKind, ImageReader};
pub use self::prompt_source::{PromptOrder, PromptSource};
pub use self::random_prompts::RandomPrompts;
pub use self::reply_text::{ReplyParts, push_reply_text};
pub use self::request::{BodyTemplate, RequestBodies, RequestSettings};
pub use self::token_count::TokenCount;

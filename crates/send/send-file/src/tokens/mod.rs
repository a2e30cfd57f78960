//! Tokens that responses of language models count in their usage, and what they cost.
//!
//! - `usage`: usage of a response, in the words of each API
//! - `prices`: prices of models, as the file of LiteLLM has them
//! - `token_counts`: sums by model

mod prices;
mod token_counts;
mod usage;

pub use self::prices::TokenPrices;
pub(crate) use self::token_counts::TokenCounts;

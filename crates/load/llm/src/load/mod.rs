//! Load of a language model's server.
//!
//! - [`LlmOptions`]: options: [`EndpointOptions`], [`PromptOptions`] and [`LlmLoadOptions`]
//! - [`LlmLoad`]: the same checked, ready to run; [`SweepValues`]: several loads; [`SearchedLoad`]: what a search changes
//! - [`LlmProgram`], `llm_shared`, `llm_thread`: conversations as users of a load
//! - [`ConversationOptions`]: the same in agents
//! - [`TraceOptions`], [`ReplayedTrace`]: arrivals and lengths of a trace; `trace_reader`, `session_window`,
//!   `trace_feeder`, `trace_tally`: how it is read; `session_source`: a trace, or sessions of clients, which are
//!   `client_composer`'s; `traced_run`: what of it was sent, and the times of each client
//! - `error_body`: what a server says of an error
//! - `uncounted`, [`TokenCounter`]: tokens that a server does not report
//!
//! ```no_run
//! use weir_llm::load::{EndpointOptions, LlmLoad, LlmLoadOptions, LlmOptions};
//!
//! let endpoint = EndpointOptions {
//!     url: "http://localhost:8000".to_owned(),
//!     model: Some("my-model".to_owned()),
//!     ..EndpointOptions::default()
//! };
//! let load = LlmLoadOptions { concurrency: Some(8), num_prompts: Some(200), ..LlmLoadOptions::default() };
//! let mut load = LlmLoad::new(&LlmOptions { endpoint, load, ..LlmOptions::default() })?;
//! let run = load.run(&[], &mut || true).map_err(|error| error.to_string())?;
//! println!("{:?}", run.llm);
//! # Ok::<(), String>(())
//! ```

mod client_composer;
mod conversation_options;
mod endpoint_options;
mod error_body;
mod llm_load;
mod llm_options;
mod llm_program;
mod llm_shared;
mod llm_thread;
mod load_options;
mod prompt_options;
mod replayed_trace;
mod searched_load;
mod session_source;
mod session_window;
mod sweep_values;
mod token_counter;
mod trace_feeder;
mod trace_options;
mod trace_reader;
mod trace_tally;
mod traced_run;
mod uncounted;

pub use self::conversation_options::ConversationOptions;
pub use self::endpoint_options::EndpointOptions;
pub use self::llm_load::{LlmLoad, LlmLoadError};
pub use self::llm_options::LlmOptions;
pub use self::llm_program::LlmProgram;
pub use self::load_options::LlmLoadOptions;
pub use self::prompt_options::{LlmPrompts, PromptOptions, RANDOM_WORDS};
pub use self::replayed_trace::ReplayedTrace;
pub use self::searched_load::SearchedLoad;
pub use self::sweep_values::SweepValues;
pub use self::token_counter::TokenCounter;
pub use self::trace_options::{TraceLoop, TraceOptions};

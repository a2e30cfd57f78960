//! Scripts of k6, in JavaScript and TypeScript, as users of a load.
//!
//! - `engine`: an interpreter for each user, on a stack of its own
//! - `modules`: the modules of k6, in JavaScript; `host`: what they reach of weir
//! - `html`: documents and selectors; `typescript`: types of files, which become spaces
//! - `options`: the object `options`; `metrics`: values, in all and by tags
//! - `http_debug`: requests in the log; `secret_sources`: secrets of `k6/secrets`
//! - `program`: the users of a load; [`K6Load`]: a load from its file to its result

mod ciphers;
mod csv_rows;
mod digests;
mod engine;
mod hooks;
mod host;
mod html;
mod http_debug;
mod init;
mod k6_load;
mod metrics;
mod modules;
mod notes;
mod options;
mod program;
mod results;
mod samples;
mod script;
mod secret_sources;
mod shared_arrays;
mod shared_channels;
mod shared_files;
mod shared_schemas;
mod source_text;
mod summary;
#[cfg(test)]
mod tests;
mod typescript;

pub use self::k6_load::{K6Load, K6Role};
pub use self::options::described::{DescribedScenario, described_scenarios};
pub use self::typescript::without_types;

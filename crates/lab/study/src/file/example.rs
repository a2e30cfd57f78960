//! Example of a study file.

/// Study file that `weir study new` writes: it works, and has all keys.
pub const EXAMPLE: &str = include_str!("example.toml");

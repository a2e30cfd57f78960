//! A file to begin with.

/// What `weir study new` writes: it works, and says what else there is.
pub const EXAMPLE: &str = include_str!("example.toml");

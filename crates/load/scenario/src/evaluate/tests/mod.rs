//! Tests of checks, captures and templates, as they are written in files.

mod checks;
mod templates;

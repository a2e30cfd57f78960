//! Trees of JSON and YAML documents whose nodes have their lines, since an omission is reported with its place.

mod json;
mod node;
mod yaml;

use crate::error::Mismatch;

pub(crate) use self::json::{parse_json, parse_json_to};
pub(crate) use self::node::{SourceNode, SourceText, SourceValue};
use self::yaml::parse_yaml;

/// Parses JSON, or YAML if a text is not JSON.
///
/// # Errors
/// The first syntax error.
pub(crate) fn parse_json_or_yaml(text: &str) -> Result<SourceNode<'_>, Mismatch> {
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        return parse_yaml(text);
    }
    parse_json(text).or_else(|mismatch| parse_yaml(text).map_err(|_| mismatch))
}

/// Most lists and maps around a value. Bounds the depth of recursion.
const MAX_DEPTH: usize = 100;

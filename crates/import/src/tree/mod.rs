//! Trees of JSON and YAML documents whose nodes have their lines, since an omission is reported with its place.

mod json;
mod node;
mod yaml;

pub(crate) use self::json::parse_json;
pub(crate) use self::node::{SourceNode, SourceValue};
pub(crate) use self::yaml::parse_yaml;

/// Most lists and maps around a value. Bounds the depth of recursion.
const MAX_DEPTH: usize = 100;

//! Collections of Postman, version 2, and its environments.

mod body;
mod fields;
mod item;

use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::placeholder::define;
use crate::session::ImportSession;
use crate::tree::{SourceNode, parse_json};

/// Reads a collection, or the variables of an environment.
pub(crate) fn read(text: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let root = parse_json(text)?;
    // Postman's API wraps a collection.
    let root = root.get("collection").filter(|inner| inner.get("item").is_some()).unwrap_or(&root);
    if root.get("item").is_some() {
        return Ok(vec![item::collection(root, session)]);
    }
    let values = root.get("values").filter(|values| !values.items().is_empty() || root.get("name").is_some());
    match values {
        Some(values) => {
            variables(values.items(), session);
            Ok(Vec::new())
        }
        None if root.get("requests").is_some() => {
            Err(Mismatch::new(root.line, "a collection of version 2", "one of version 1; export it as v2.1"))
        }
        None => Err(Mismatch::new(root.line, "a collection with \"item\", or an environment", root.noun())),
    }
}

/// Defines variables of a collection or an environment.
fn variables(nodes: &[SourceNode<'_>], session: &mut ImportSession) {
    for node in nodes {
        let is_off = node.is_true("disabled") || node.get("enabled").is_some() && !node.is_true("enabled");
        let Some(key) = node.text_of("key").or_else(|| node.text_of("id")).filter(|_| !is_off) else { continue };
        let value = node.text_of("value").or_else(|| node.text_of("currentValue")).unwrap_or_default();
        let is_secret = node.text_of("type").as_deref() == Some("secret");
        define(&key, &value, is_secret, node.line, session);
    }
}

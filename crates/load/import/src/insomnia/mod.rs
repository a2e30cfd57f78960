//! Exports of Insomnia: version 4 as JSON or YAML, version 5 as YAML.

mod request;
mod tag;
mod tree_v4;
mod tree_v5;

use self::request::InsomniaReader;
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::placeholder;
use crate::session::ImportSession;
use crate::tree::{SourceNode, parse_json_or_yaml};

/// Folders within one another that are read.
const MAX_DEPTH: usize = 50;

/// Reads an export.
pub(crate) fn read(text: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let root = parse_json_or_yaml(text)?;
    let mut scenario = ImportedScenario::default();
    let mut reader = InsomniaReader::new(session);
    if let Some(collection) = root.get("collection") {
        scenario.name = root.text_of("name").unwrap_or_default();
        tree_v5::read(&root, collection, &mut reader, &mut scenario);
    } else if let Some(resources) = root.get("resources") {
        tree_v4::read(resources, &mut reader, &mut scenario);
    } else {
        return Err(Mismatch::new(root.line, "an export with \"resources\" or \"collection\"", root.noun()));
    }
    reader.finish(&mut scenario);
    session.end(&mut scenario);
    Ok(vec![scenario])
}

/// Defines the variables of an environment; members of members have their path as name, as in `{{ _.api.key }}`.
fn environment(node: &SourceNode<'_>, prefix: &str, session: &mut ImportSession, depth: usize) {
    for (name, value) in node.members() {
        let path = if prefix.is_empty() { name.into_owned() } else { format!("{prefix}.{name}") };
        match value.scalar() {
            Some(text) => placeholder::define(&path, &text, false, value.line, session),
            None if depth < MAX_DEPTH => environment(value, &path, session, depth + 1),
            None => {}
        }
    }
}

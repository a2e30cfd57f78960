//! Version 5: folders with their children.

use super::request::InsomniaReader;
use super::{MAX_DEPTH, environment};
use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::tree::SourceNode;

pub(super) fn read(
    root: &SourceNode<'_>,
    collection: &SourceNode<'_>,
    reader: &mut InsomniaReader<'_>,
    scenario: &mut ImportedScenario,
) {
    if let Some(environments) = root.get("environments") {
        if let Some(data) = environments.get("data") {
            environment(data, "", reader.session, 0);
        }
        for other in environments.items_of("subEnvironments") {
            if let Some(data) = other.get("data") {
                environment(data, "", reader.session, 0);
            }
        }
    }
    walk(collection.items(), &[], reader, scenario, 0);
}

fn walk(
    nodes: &[SourceNode<'_>],
    tags: &[String],
    reader: &mut InsomniaReader<'_>,
    scenario: &mut ImportedScenario,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let mut nodes: Vec<&SourceNode<'_>> = nodes.iter().collect();
    let key = |node: &SourceNode<'_>| {
        node.get("meta").and_then(|meta| meta.get("sortKey")).and_then(SourceNode::number).unwrap_or(0.0)
    };
    nodes.sort_by(|a, b| key(a).total_cmp(&key(b)));
    for node in nodes {
        let name = node.text_of("name").unwrap_or_default();
        if let Some(children) = node.get("children") {
            if let Some(data) = node.get("environment") {
                environment(data, "", reader.session, 0);
            }
            let tags: Vec<String> = tags.iter().cloned().chain([name]).collect();
            walk(children.items(), &tags, reader, scenario, depth + 1);
            continue;
        }
        let id = node.get("meta").and_then(|meta| meta.text_of("id")).unwrap_or_default();
        let url = node.text_of("url").unwrap_or_default();
        let is_other = id.starts_with("ws-req") || id.starts_with("greq") || node.get("protoFileId").is_some();
        if is_other || url.starts_with("ws://") || url.starts_with("wss://") {
            reader.session.omit(node.line, OmissionKind::Request, format!("{name} {url}"));
        } else {
            reader.request(node, &id, tags, scenario);
        }
    }
}

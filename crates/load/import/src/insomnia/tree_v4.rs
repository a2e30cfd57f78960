//! Version 4: a list of resources, each of which names its parent.

use std::collections::BTreeMap;

use super::request::InsomniaReader;
use super::{MAX_DEPTH, environment};
use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::tree::SourceNode;

pub(super) fn read(resources: &SourceNode<'_>, reader: &mut InsomniaReader<'_>, scenario: &mut ImportedScenario) {
    let mut children: BTreeMap<String, Vec<&SourceNode<'_>>> = BTreeMap::new();
    let mut ids = Vec::new();
    for resource in resources.items() {
        ids.extend(resource.text_of("_id"));
        children.entry(resource.text_of("parentId").unwrap_or_default()).or_default().push(resource);
    }
    for list in children.values_mut() {
        list.sort_by(|a, b| {
            let key = |node: &SourceNode<'_>| node.get("metaSortKey").and_then(SourceNode::number).unwrap_or(0.0);
            key(a).total_cmp(&key(b))
        });
    }
    // Environments first: the base one, then those below it, of which the first one that has a variable wins.
    let of_kind = |kind: &'static str| {
        resources.items().iter().filter(move |resource| resource.text_of("_type").as_deref() == Some(kind))
    };
    for resource in of_kind("environment") {
        if let Some(data) = resource.get("data") {
            environment(data, "", reader.session, 0);
        }
    }
    if let Some(workspace) = of_kind("workspace").next() {
        scenario.name = workspace.text_of("name").unwrap_or_default();
    }
    // What has a parent that is not in the file is at the top.
    let tops: Vec<String> = children.keys().filter(|parent| !ids.contains(parent)).cloned().collect();
    for top in tops {
        walk(&top, &children, &[], reader, scenario, 0);
    }
}

fn walk(
    parent: &str,
    children: &BTreeMap<String, Vec<&SourceNode<'_>>>,
    tags: &[String],
    reader: &mut InsomniaReader<'_>,
    scenario: &mut ImportedScenario,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    for resource in children.get(parent).into_iter().flatten() {
        let id = resource.text_of("_id").unwrap_or_default();
        let name = resource.text_of("name").unwrap_or_default();
        match resource.text_of("_type").unwrap_or_default().as_str() {
            "request" => reader.request(resource, &id, tags, scenario),
            "request_group" => {
                if let Some(data) = resource.get("environment") {
                    environment(data, "", reader.session, 0);
                }
                let tags: Vec<String> = tags.iter().cloned().chain([name]).collect();
                walk(&id, children, &tags, reader, scenario, depth + 1);
            }
            "workspace" => walk(&id, children, tags, reader, scenario, depth + 1),
            kind @ ("websocket_request" | "grpc_request" | "socketio_request" | "mcp_request") => {
                let what = format!("the {} {name}", kind.replace('_', " "));
                reader.session.omit(resource.line, OmissionKind::Request, what);
            }
            kind @ ("unit_test" | "unit_test_suite") => {
                let what = format!("the {} {name}", kind.replace('_', " "));
                reader.session.omit(resource.line, OmissionKind::Script, what);
            }
            // Cookies, descriptions and settings of the program.
            _ => {}
        }
    }
}

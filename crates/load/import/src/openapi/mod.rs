//! Descriptions of APIs: OpenAPI 3.0 and 3.1, Swagger 2, as JSON or YAML. A step for each operation.

mod description;
mod example;
mod form;
mod number;
mod operation;
mod parameter;
mod pattern;
mod request_body;
mod security;
mod server;
mod style;

use self::description::ApiDescription;
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::settings::ImportSettings;
use crate::tree::{SourceNode, parse_json_or_yaml};

/// Methods of operations, in the order in which a path is imported.
const METHODS: [&str; 8] = ["get", "head", "options", "post", "put", "patch", "delete", "trace"];

/// Reads a description.
pub(crate) fn read(
    text: &str,
    settings: &ImportSettings,
    session: &mut ImportSession,
) -> Result<Vec<ImportedScenario>, Mismatch> {
    let root = parse_json_or_yaml(text)?;
    if root.get("openapi").is_none() && root.get("swagger").is_none() {
        return Err(Mismatch::new(root.line, "\"openapi\" or \"swagger\" with its version", root.noun()));
    }
    let description = ApiDescription::new(&root, settings.seed);
    let base = server::base(&description, session);
    let mut servers = server::ServerTable::default();
    let name = root.get("info").and_then(|info| info.text_of("title")).unwrap_or_default();
    let mut scenario = ImportedScenario { name, ..ImportedScenario::default() };
    let Some(paths) = root.get("paths") else {
        return Err(Mismatch::new(root.line, "\"paths\" with operations", "none"));
    };
    for (path, item) in paths.members() {
        if let Some(reference) = description.missing(item) {
            session.omit(
                item.line,
                OmissionKind::Request,
                format!("the path {path} of {reference}, which is not in the file"),
            );
            continue;
        }
        let item = description.resolve(item);
        let shared = server::inner(item, &base, &mut servers, session);
        for method in METHODS {
            let Some(operation) = item.get(method).filter(|operation| operation.is_map()) else { continue };
            let own = server::inner(operation, &shared, &mut servers, session);
            let step = operation::Operation { description: &description, path: &path, method, item, operation }
                .step(&own, settings, session);
            session.push(&mut scenario, step);
        }
    }
    for (name, hook) in root.get("webhooks").into_iter().flat_map(SourceNode::members) {
        session.omit(hook.line, OmissionKind::Request, format!("the webhook {name}, which the service sends"));
    }
    session.end(&mut scenario);
    Ok(vec![scenario])
}

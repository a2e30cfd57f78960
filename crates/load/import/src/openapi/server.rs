//! URL of the service that a description is of.

use weir_hurl::Template;

use super::description::ApiDescription;
use crate::address::BASE_URL;
use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Text before the paths of operations; the variable `base_url` has the scheme and the host.
pub(super) fn base(description: &ApiDescription<'_>, session: &mut ImportSession) -> Template {
    let url = if description.is_swagger() { swagger(description) } else { first_server(description) };
    let name = session.names.name(BASE_URL);
    let base = text::variable(&name);
    let url = url.trim().trim_end_matches('/');
    if url.starts_with("http://") || url.starts_with("https://") {
        session.import.define(&name, url, false);
        return base;
    }
    // Without a scheme, and with a host that is told from a path by its beginning.
    let is_host = url.starts_with("localhost") || url.split('/').next().is_some_and(|host| host.contains('.'));
    if is_host && !url.starts_with(['.', '/', '{']) && !url.contains("://") {
        session.import.define(&name, &format!("http://{url}"), false);
        return base;
    }
    // Nothing is known of a variable without a default.
    if url.contains('{') || url.contains("://") {
        return base;
    }
    let slash = if url.is_empty() || url.starts_with('/') { "" } else { "/" };
    let url = format!("{slash}{url}");
    // A path is relative to where the description is from, which is unknown.
    text::concat([&base, &Template::text(url)])
}

fn swagger(description: &ApiDescription<'_>) -> String {
    let root = description;
    let path = root.text_of("basePath").unwrap_or_default();
    let path = if path.is_empty() || path.starts_with('/') { path } else { format!("/{path}") };
    let Some(host) = root.text_of("host").filter(|host| !host.is_empty()) else { return path };
    let schemes: Vec<String> =
        root.get("schemes").map(SourceNode::items).unwrap_or_default().iter().filter_map(SourceNode::scalar).collect();
    let scheme = if schemes.is_empty() || schemes.iter().any(|scheme| scheme == "https") { "https" } else { "http" };
    format!("{scheme}://{host}{path}")
}

/// URL of the first server.
fn first_server(description: &ApiDescription<'_>) -> String {
    description.get("servers").and_then(|servers| servers.items().first()).map(url_of).unwrap_or_default()
}

/// Variables of the servers of paths and operations, by their URLs.
#[derive(Debug, Default)]
pub(super) struct ServerTable(Vec<(String, Template)>);

/// Text before a path, where the path or the operation has servers of its own.
pub(super) fn inner(
    node: &SourceNode<'_>,
    outer: &Template,
    known: &mut ServerTable,
    session: &mut ImportSession,
) -> Template {
    let Some(server) = node.items_of("servers").first() else { return outer.clone() };
    let url = url_of(server);
    let url = url.trim().trim_end_matches('/').to_owned();
    if let Some((_, base)) = known.0.iter().find(|(own, _)| *own == url) {
        return base.clone();
    }
    let name = session.names.unique(BASE_URL);
    if url.contains("://") && !url.contains('{') {
        session.import.define(&name, &url, false);
    } else {
        let what = format!("the server {url}, relative to where the description is from: the variable {name} needs it");
        session.omit(server.line, OmissionKind::Setting, what);
    }
    let base = text::variable(&name);
    known.0.push((url, base.clone()));
    base
}

/// URL of a server, its variables with their defaults.
fn url_of(server: &SourceNode<'_>) -> String {
    let mut url = server.text_of("url").unwrap_or_default();
    for (name, variable) in server.get("variables").into_iter().flat_map(SourceNode::members) {
        let first = || variable.items_of("enum").first().and_then(SourceNode::scalar);
        let value = variable.text_of("default").or_else(first).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), &value);
    }
    url
}

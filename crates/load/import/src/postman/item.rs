//! Folders and requests of a collection.

use weir_hurl::{OptionName, Template};

use super::{body, variables};
use crate::api_auth::ApiAuth;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::placeholder::braces;
use crate::request::ImportedStep;
use crate::script;
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Path and authentication that a request inherits from its folders.
#[derive(Clone, Debug, Default)]
struct Folder<'a, 'b> {
    path: Vec<String>,
    auth: Option<&'a SourceNode<'b>>,
}

pub(super) fn collection(root: &SourceNode<'_>, session: &mut ImportSession) -> ImportedScenario {
    let name = root.get("info").and_then(|info| info.text_of("name")).unwrap_or_default();
    let mut scenario = ImportedScenario { name, ..ImportedScenario::default() };
    variables(root.items_of("variable"), session);
    events(root, "of the collection", session);
    let folder = Folder { path: Vec::new(), auth: root.get("auth") };
    items(root, &folder, session, &mut scenario);
    session.end(&mut scenario);
    scenario
}

fn items<'a>(
    node: &'a SourceNode<'_>,
    folder: &Folder<'a, '_>,
    session: &mut ImportSession,
    scenario: &mut ImportedScenario,
) {
    for item in node.items_of("item") {
        let name = item.text_of("name").unwrap_or_default();
        if item.get("item").is_some() {
            let path = folder.path.iter().cloned().chain([name.clone()]).collect();
            events(item, &format!("of the folder {name}"), session);
            variables(item.items_of("variable"), session);
            let auth = item.get("auth").filter(|auth| auth.is_map()).or(folder.auth);
            items(item, &Folder { path, auth }, session, scenario);
            continue;
        }
        match item.get("request") {
            Some(request) => {
                let step = request_step(item, request, &name, folder, session);
                session.push(scenario, step);
            }
            None => session.omit(item.line, OmissionKind::Request, format!("the item {name} without a request")),
        }
    }
}

/// Omissions of scripts that belong to no request.
fn events(node: &SourceNode<'_>, place: &str, session: &mut ImportSession) {
    for event in node.items_of("event") {
        let lines = script_lines(event);
        if lines.iter().any(|(_, line)| script::has_code(line)) {
            let kind = event.text_of("listen").unwrap_or_default();
            session.omit(event.line, OmissionKind::Script, format!("the {kind} script {place}"));
        }
    }
}

/// Lines of a script with their places.
fn script_lines(event: &SourceNode<'_>) -> Vec<(u32, String)> {
    let Some(exec) = event.get("script").and_then(|script| script.get("exec")) else { return Vec::new() };
    if let Some(text) = exec.text() {
        return text.lines().map(|line| (exec.line, line.to_owned())).collect();
    }
    exec.items().iter().filter_map(|line| Some((line.line, line.scalar()?))).collect()
}

fn request_step(
    item: &SourceNode<'_>,
    request: &SourceNode<'_>,
    name: &str,
    folder: &Folder<'_, '_>,
    session: &mut ImportSession,
) -> ImportedStep {
    let mut step =
        ImportedStep { name: name.to_owned(), line: item.line, tags: folder.path.clone(), ..ImportedStep::default() };
    // A request may be its URL alone.
    let method = request.text_of("method").unwrap_or_else(|| "GET".to_owned());
    let address = request.get("url").unwrap_or(request);
    let url = url(address, session);
    builder::set_line(&mut step, &method, &url, session);
    for header in request.items_of("header").iter().filter(|header| !header.is_true("disabled")) {
        let name = header.text_of("key").unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        let value = braces(&header.text_of("value").unwrap_or_default(), header.line, session);
        builder::add_header(&mut step, &name, &value, session);
    }
    if let Some(text) = request.get("header").and_then(SourceNode::text) {
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = braces(value.trim(), request.line, session);
            builder::add_header(&mut step, name, &value, session);
        }
    }
    let pruning = item.get("protocolProfileBehavior").and_then(|behavior| behavior.text_of("disableBodyPruning"));
    body::read(request, pruning.as_deref() == Some("true"), &mut step, session);
    match request.get("auth").filter(|auth| auth.is_map()).or(folder.auth) {
        Some(auth) => ApiAuth::from_node(auth).apply(&mut step, session),
        None => builder::take_basic_auth(&mut step),
    }
    let behavior = item.get("protocolProfileBehavior").and_then(|behavior| behavior.text_of("followRedirects"));
    if behavior.as_deref() != Some("false") {
        step.request.set_flag(OptionName::Location);
    }
    for event in item.items_of("event") {
        let lines = script_lines(event);
        let is_test = event.text_of("listen").as_deref() == Some("test");
        script::take(&lines, is_test, &mut step, session);
    }
    step
}

/// URL without the parameters that are switched off, and with the values of path variables.
fn url(node: &SourceNode<'_>, session: &mut ImportSession) -> Template {
    let line = node.line;
    let raw = node.text().map(std::borrow::Cow::into_owned).or_else(|| node.text_of("raw"));
    let raw = raw.filter(|raw| !raw.is_empty()).unwrap_or_else(|| joined(node));
    let mut url = braces(raw.trim(), line, session);
    for variable in node.items_of("variable") {
        let Some(key) = variable.text_of("key").or_else(|| variable.text_of("id")) else { continue };
        let value = variable.text_of("value").unwrap_or_default();
        let value = match value.is_empty() {
            true => text::variable(&session.names.name(&key)),
            false => braces(&value, variable.line, session),
        };
        url = builder::with_path_variable(&url, &key, &value);
    }
    url
}

/// URL of its parts.
fn joined(node: &SourceNode<'_>) -> String {
    let list = |key: &str, separator: &str| match node.get(key) {
        Some(part) if !part.items().is_empty() => part
            .items()
            .iter()
            .filter_map(|part| part.scalar().or_else(|| part.text_of("value")))
            .collect::<Vec<_>>()
            .join(separator),
        Some(part) => part.scalar().unwrap_or_default(),
        None => String::new(),
    };
    let host = list("host", ".");
    let scheme = node.text_of("protocol").map(|scheme| format!("{scheme}://")).unwrap_or_default();
    let port = node.text_of("port").map(|port| format!(":{port}")).unwrap_or_default();
    let path = list("path", "/");
    let gap = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let parameters: Vec<String> = node
        .items_of("query")
        .iter()
        .filter(|parameter| !parameter.is_true("disabled"))
        .map(|parameter| {
            let value = parameter.text_of("value").unwrap_or_default();
            format!("{}={value}", parameter.text_of("key").unwrap_or_default())
        })
        .collect();
    let mark = if parameters.is_empty() { "" } else { "?" };
    if host.is_empty() && path.is_empty() {
        return String::new();
    }
    format!("{scheme}{host}{port}{gap}{path}{mark}{}", parameters.join("&"))
}

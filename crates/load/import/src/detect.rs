//! Kind of a file by its content.

use crate::kind::ImportKind;

/// Bytes at the beginning in which a kind shows itself.
const MAX_LOOK: usize = 64 << 10;

/// Kind of a file; its name decides only between formats whose texts look the same. `None` if it is none of them, or a
/// scenario already.
pub fn detect(name: &str, text: &str) -> Option<ImportKind> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let look = beginning(text, MAX_LOOK);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    if text.starts_with('<') {
        return look.contains("<jmeterTestPlan").then_some(ImportKind::Jmx);
    }
    if text.starts_with('{') && name.ends_with(".env.json") && name.contains("http-client") {
        return Some(ImportKind::Http);
    }
    if text.starts_with('{')
        && let Some(kind) = json_kind(text, look)
    {
        return Some(kind);
    }
    if let Some(kind) = yaml_kind(look) {
        return Some(kind);
    }
    if is_bruno(look) {
        return Some(ImportKind::Bruno);
    }
    match extension.as_str() {
        "hurl" => return None,
        "bru" => return Some(ImportKind::Bruno),
        "http" | "rest" => return Some(ImportKind::Http),
        _ => {}
    }
    if is_curl(look) {
        return Some(ImportKind::Curl);
    }
    is_http(look).then_some(ImportKind::Http)
}

/// Text up to a number of bytes, at the boundary of a character.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn json_kind(text: &str, look: &str) -> Option<ImportKind> {
    let has = |name: &str| has_member(look, name);
    if has("openapi") || has("swagger") {
        return Some(ImportKind::OpenApi);
    }
    if has("log") && (has("entries") || has("creator") || has("version")) {
        return Some(ImportKind::Har);
    }
    if look.contains("schema.getpostman.com") || text.contains("schema.getpostman.com") {
        return Some(ImportKind::Postman);
    }
    if has("_postman_id") || has("_postman_variable_scope") || (has("item") && has("info")) {
        return Some(ImportKind::Postman);
    }
    if has("brunoConfig")
        || (has("items") && has("uid") && has("version"))
        || (has("items") && has("version") && has("name"))
    {
        return Some(ImportKind::Bruno);
    }
    if has("values") && has("name") && (has("enabled") || has("id")) {
        return Some(ImportKind::Postman);
    }
    if has("item") && text.contains("\"request\"") {
        return Some(ImportKind::Postman);
    }
    if is_environments(text) {
        return Some(ImportKind::Http);
    }
    // A large description may begin with something else.
    let late = |name: &str| has_member(text, name);
    if late("paths") && (late("openapi") || late("swagger")) {
        return Some(ImportKind::OpenApi);
    }
    None
}

/// Whether a text is the environments of JetBrains: objects whose members are texts, numbers or booleans.
fn is_environments(text: &str) -> bool {
    let whole = (text.len() <= MAX_LOOK).then(|| serde_json::from_str::<serde_json::Value>(text).ok()).flatten();
    let is_plain = |value: &serde_json::Value| value.is_string() || value.is_number() || value.is_boolean();
    whole.as_ref().and_then(serde_json::Value::as_object).is_some_and(|environments| {
        let mut objects = environments.values().map(serde_json::Value::as_object);
        let has_values = environments.values().any(|value| value.as_object().is_some_and(|value| !value.is_empty()));
        has_values && objects.all(|own| own.is_some_and(|own| own.values().all(is_plain)))
    })
}

/// Whether a text has a member of JSON with this name.
fn has_member(text: &str, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    text.match_indices(&quoted).any(|(at, _)| text[at + quoted.len()..].trim_start().starts_with(':'))
}

fn yaml_kind(look: &str) -> Option<ImportKind> {
    let begins = |word: &str| {
        look.lines().any(|line| {
            let line = line.strip_prefix(['"', '\'']).unwrap_or(line);
            line.strip_prefix(word)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
        })
    };
    (begins("openapi") || begins("swagger")).then_some(ImportKind::OpenApi)
}

/// Whether a line begins a block of Bruno that requests and environments have.
fn is_bruno(look: &str) -> bool {
    let blocks =
        ["meta {", "get {", "post {", "put {", "patch {", "delete {", "head {", "options {", "vars {", "vars:secret ["];
    let mut lines = look.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| blocks.contains(&line))
}

fn is_curl(look: &str) -> bool {
    // A command may be in a pipe or a group, and behind a prompt or a word that runs it.
    let is_before = |word: &&str| {
        matches!(*word, "$" | "!" | "time" | "sudo" | "if" | "while" | "until" | "do" | "then" | "else" | "exec")
    };
    let is_command = |part: &str| {
        let mut words = part.split([' ', '\t', '\\', '^', '\r']).filter(|word| !word.is_empty());
        matches!(words.find(|word| !is_before(word)), Some("curl" | "curl.exe"))
    };
    look.lines().any(|line| line.split(['|', ';', '&', '(', '{']).any(is_command))
        || (look.starts_with("#!") && look.contains("curl "))
}

fn is_http(look: &str) -> bool {
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let lines = || look.lines().map(str::trim);
    let has_request = lines().any(|line| {
        line.split_once(' ').is_some_and(|(method, rest)| methods.contains(&method) && !rest.trim().is_empty())
    });
    let is_hurl = lines().any(|line| {
        line == "[Asserts]" || line == "[Captures]" || line.starts_with("HTTP ") || line.starts_with("[Options]")
    });
    let has_mark = lines().any(|line| {
        line.starts_with("###") || line.starts_with("> {%") || (line.starts_with('@') && line.contains('='))
    });
    has_request && has_mark && !is_hurl
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_told_from_the_content() {
        for (name, text, kind) in [
            ("-", "curl http://h", Some(ImportKind::Curl)),
            ("a.sh", "#!/bin/sh\nset -e\n  curl -s http://h\n", Some(ImportKind::Curl)),
            ("a.sh", "X=1\necho '{}' | curl http://h -d @-\n", Some(ImportKind::Curl)),
            ("a.sh", "{ time curl http://h; }\n", Some(ImportKind::Curl)),
            ("a.txt", "use the curl command\n", None),
            ("a.json", "{\"log\": {\"version\": \"1.2\", \"entries\": []}}", Some(ImportKind::Har)),
            ("a.json", "{\"info\": {\"schema\": \"x\"}, \"item\": []}", Some(ImportKind::Postman)),
            ("a.json", "{\"name\": \"dev\", \"values\": [{\"enabled\": true}]}", Some(ImportKind::Postman)),
            ("a.json", "{\"swagger\": \"2.0\"}", Some(ImportKind::OpenApi)),
            ("a.yaml", "# x\nopenapi: 3.0.1\n", Some(ImportKind::OpenApi)),
            ("a.txt", "### login\nPOST http://h/login\n", Some(ImportKind::Http)),
            ("a.http", "GET http://h", Some(ImportKind::Http)),
            ("a.xml", "<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">", Some(ImportKind::Jmx)),
            ("a.json", "{\"_type\": \"export\", \"__export_format\": 4, \"resources\": []}", None),
            ("a.yaml", "type: collection.insomnia.rest/5.0\nname: shop\ncollection:\n  - url: http://h\n", None),
            ("a.bru", "meta {\n  name: x\n}\n", Some(ImportKind::Bruno)),
            ("shop.hurl", "GET http://h\nHTTP 200\n", None),
            ("shop.txt", "GET http://h\nHTTP 200\n", None),
            ("a.json", "{\"dev\": {\"host\": \"h\"}, \"$shared\": {\"n\": 1}}", Some(ImportKind::Http)),
            ("a.json", "{\"dev\": {\"hosts\": []}}", None),
            ("http-client.env.json", "{\"dev\": {\"Security\": {}}}", Some(ImportKind::Http)),
            ("a.json", "[1, 2]", None),
            ("a.html", "<html>", None),
        ] {
            assert_eq!(detect(name, text), kind, "{name}: {text}");
        }
    }
}

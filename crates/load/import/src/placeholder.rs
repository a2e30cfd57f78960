//! Placeholders of other tools in texts, such as `{{token}}`, `${token}` and `{{$guid}}`, as expressions.

use weir_hurl::Template;

use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::text;

/// Functions in `{{$...}}` of Postman, the REST Client, JetBrains and Bruno, as expressions.
const FUNCTIONS: [(&str, &str); 26] = [
    ("guid", "{{newUuid}}"),
    ("uuid", "{{newUuid}}"),
    ("randomUUID", "{{newUuid}}"),
    ("random.uuid", "{{newUuid}}"),
    ("timestamp", "{{newDate dateFormat \"%s\"}}"),
    ("isoTimestamp", "{{newDate}}"),
    ("randomInt", "{{randomInt 0 1000}}"),
    ("random.integer", "{{randomInt 0 1000}}"),
    ("randomBoolean", "{{randomBool}}"),
    ("randomFirstName", "{{randomFirstName}}"),
    ("randomLastName", "{{randomLastName}}"),
    ("randomFullName", "{{randomFullName}}"),
    ("randomUserName", "{{randomWord}}{{randomInt 1 999}}"),
    ("randomEmail", "{{randomEmail}}"),
    ("randomExampleEmail", "{{randomEmail}}"),
    ("random.email", "{{randomEmail}}"),
    ("randomPassword", "{{randomString 15}}"),
    ("randomAlphaNumeric", "{{randomString 1}}"),
    ("random.alphabetic", "{{randomString 10}}"),
    ("random.alphanumeric", "{{randomString 10}}"),
    ("randomWord", "{{randomWord}}"),
    ("randomLoremWord", "{{randomWord}}"),
    ("randomWords", "{{randomWord}} {{randomWord}} {{randomWord}}"),
    ("randomLoremSentence", "{{randomWord}} {{randomWord}} {{randomWord}} {{randomWord}}"),
    ("randomPrice", "{{randomInt 0 1000}}.{{randomInt 10 99}}"),
    ("randomPort", "{{randomInt 1024 65535}}"),
];

/// Text with placeholders `{{name}}` as a template.
pub(crate) fn braces(text: &str, line: u32, session: &mut ImportSession) -> Template {
    between("{{", "}}", text, line, session, &mut expression)
}

/// Defines a variable of a file, whose value may have placeholders.
pub(crate) fn define(original: &str, value: &str, is_secret: bool, line: u32, session: &mut ImportSession) {
    let name = session.names.name(original);
    let value = braces(value, line, session);
    match value.as_text() {
        Some("") => {}
        Some(text) => session.import.define(&name, text, is_secret),
        None => define_as(name, value, session),
    }
}

/// Defines a variable as a text with variables.
pub(crate) fn define_as(name: String, value: Template, session: &mut ImportSession) {
    session.formulas.entry(name).or_insert(value);
}

/// Text with placeholders between two marks; `expression` is called with what is between them.
pub(crate) fn between(
    open: &str,
    close: &str,
    text: &str,
    line: u32,
    session: &mut ImportSession,
    expression: &mut dyn FnMut(&str, u32, &mut ImportSession) -> Option<Template>,
) -> Template {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let after = &rest[start + open.len()..];
        let Some(length) = after.find(close) else { break };
        // The innermost pair: `{{{name}}}` is a brace around a variable.
        let opening = after[..length].rfind(open).map_or(0, |at| at + open.len());
        let inner = &after[opening..length];
        let skipped = inner.len() - inner.trim_start_matches('{').len();
        let (opening, inner) = (opening + skipped, &inner[skipped..]);
        let before = &rest[..start + open.len() + opening - open.len()];
        let end = start + open.len() + length + close.len();
        let made = if inner.contains('\n') { None } else { expression(inner, line, session) };
        match made {
            Some(made) => {
                parts.push(Template::text(before));
                parts.push(made);
            }
            None => parts.push(Template::text(&rest[..end])),
        }
        rest = &rest[end..];
    }
    parts.push(Template::text(rest));
    text::concat(&parts)
}

/// Expression of what is in `{{...}}`; `None` for a text that only looks like one.
pub(crate) fn expression(inner: &str, line: u32, session: &mut ImportSession) -> Option<Template> {
    let inner = inner.trim();
    match inner.strip_prefix('$') {
        Some(function) => Some(self::function(function, line, session)),
        None if inner.is_empty() => None,
        None if inner.contains(['"', '\'', '{', '}', '(']) => {
            session.omit(line, OmissionKind::Variable, format!("the expression {{{{{inner}}}}}, sent as a variable"));
            Some(text::variable(&session.names.name(inner)))
        }
        None => Some(text::variable(&session.names.name(inner))),
    }
}

/// Expression of a function without its `$`.
fn function(call: &str, line: u32, session: &mut ImportSession) -> Template {
    let name = call.split(['(', ' ', '\t']).next().unwrap_or_default();
    let args: Vec<&str> =
        call[name.len()..].split(['(', ')', ',', ' ', '\t', '\'', '"']).filter(|arg| !arg.is_empty()).collect();
    match (name, args.as_slice()) {
        ("randomInt" | "random.integer", [from, to]) => {
            if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
                // The end is not included in either tool.
                return parsed(&format!("{{{{randomInt {from} {}}}}}", to.saturating_sub(1).max(from)));
            }
        }
        ("random.alphabetic" | "random.alphanumeric" | "random.hexadecimal", [length]) => {
            if let Ok(length) = length.parse::<u16>() {
                return parsed(&format!("{{{{randomString {length}}}}}"));
            }
        }
        ("processEnv" | "dotenv", [.., name]) => {
            return text::variable(&session.names.name(name.trim_start_matches('%')));
        }
        ("datetime" | "localDatetime", ["iso8601", ..]) => return parsed("{{newDate}}"),
        ("datetime" | "localDatetime", ["rfc1123", ..]) => {
            return parsed("{{newDate dateFormat \"%a, %d %b %Y %H:%M:%S GMT\"}}");
        }
        _ => {}
    }
    if let Some(variable) = name.strip_prefix("env.").or_else(|| name.strip_prefix("shared ")) {
        return text::variable(&session.names.name(variable));
    }
    if let Some((_, made)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
        return parsed(made);
    }
    session.omit(line, OmissionKind::Variable, format!("the function ${call}, a random word instead"));
    parsed("{{randomWord}}")
}

/// Template of a text of ours.
pub(crate) fn parsed(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|_| Template::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, usize) {
        let mut session = ImportSession::default();
        let template = braces(text, 1, &mut session);
        (text::source(&template), session.import.omissions.len())
    }

    #[test]
    fn placeholders_are_variables_and_functions() {
        for (text, expected) in [
            ("{{base url}}/a/{{id}}", "{{base_url}}/a/{{id}}"),
            ("{\"a\": {{{n}}}}", "{\"a\": {{{n}}}}"),
            ("{{$guid}}{{$randomInt 5 10}}", "{{newUuid}}{{randomInt 5 9}}"),
            ("{{$random.integer(1, 7)}}", "{{randomInt 1 6}}"),
            ("{{$processEnv %TOKEN}}", "{{TOKEN}}"),
            ("{{open", "{{open"),
            ("{{}}{{\n}}", "{{}}{{\n}}"),
        ] {
            assert_eq!(read(text), (expected.to_owned(), 0), "{text}");
        }
        assert_eq!(read("{{$randomCatName}}"), ("{{randomWord}}".to_owned(), 1));
    }

    #[test]
    fn all_functions_are_expressions() {
        for (name, made) in FUNCTIONS {
            assert!(parsed(made).expressions().count() > 0, "{name}");
        }
    }
}

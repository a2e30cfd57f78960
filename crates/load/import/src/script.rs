//! Scripts of Postman, Bruno and JetBrains: statements that are a capture or a check become one; the others are
//! omissions.
//!
//! Only what a line says by itself is translated: `pm.environment.set("token", pm.response.json().token)` is a capture,
//! `pm.response.to.have.status(200)` a check. A script with anything else is an omission, also if a part of it is
//! translated, since what is left may matter.

use std::collections::BTreeMap;

use weir_hurl::{
    Assertion, Capture, ExpectedResponse, ExpectedStatus, OptionName, OptionValue, QueryKind, RequestOption,
    ResponseQuery, ScalarValue, Template, TextPosition, TextQuery, VariableDefinition,
};

use crate::builder;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::script_predicate::{predicate, string};
use crate::session::ImportSession;
use crate::text;

/// Calls that set a variable, before their arguments.
const SETTERS: [&str; 9] = [
    "pm.environment.set(",
    "pm.collectionVariables.set(",
    "pm.globals.set(",
    "pm.variables.set(",
    "postman.setEnvironmentVariable(",
    "postman.setGlobalVariable(",
    "client.global.set(",
    "bru.setVar(",
    "bru.setEnvVar(",
];

/// Expressions of the body as JSON.
const BODIES: [&str; 8] = [
    "pm.response.json()",
    "JSON.parse(responseBody)",
    "JSON.parse(pm.response.text())",
    "response.body",
    "res.getBody()",
    "res.body",
    "responseJson()",
    "JSON.parse(response.body)",
];

/// Longest path into a body: variables of variables could make it as long as the script each.
const MAX_PATH_BYTES: usize = 1024;

/// Whether a line has code: it is neither empty nor a comment.
pub(crate) fn has_code(line: &str) -> bool {
    let line = line.trim();
    !(line.is_empty() || line.starts_with("//") || line.starts_with("/*") || line.starts_with('*'))
}

/// Takes a script of a step, whose lines have their places.
pub(crate) fn take(
    lines: &[(u32, String)],
    is_after_response: bool,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let mut reader =
        ScriptReader { bodies: BTreeMap::new(), response: ExpectedResponse::default(), captured: Vec::new() };
    let mut unknown: Vec<&(u32, String)> = Vec::new();
    for line in lines.iter().filter(|(_, code)| has_code(code)) {
        let mut is_known = true;
        for statement in statements(&line.1) {
            is_known &= match is_after_response {
                true => reader.statement(statement, session),
                false => set_before(statement, step, session),
            } || is_frame(statement)
                || is_log(statement);
        }
        unknown.extend((!is_known).then_some(line));
    }
    let found = reader.response;
    let status = found.status;
    if !found.captures.is_empty() || !found.asserts.is_empty() || status != ExpectedStatus::Any {
        let response = step.response.get_or_insert_with(ExpectedResponse::default);
        if response.status == ExpectedStatus::Any {
            response.status = status;
        }
        response.captures.extend(found.captures);
        response.asserts.extend(found.asserts);
    }
    if let Some((line, code)) = unknown.first() {
        let count = lines.iter().filter(|(_, code)| has_code(code)).count();
        let when = if is_after_response { "a script after the response" } else { "a script before the request" };
        let noun = if count == 1 { "line" } else { "lines" };
        let what = match unknown.len() == count {
            true => format!("{when}, {count} {noun}: {}", code.trim()),
            false => format!("{} of {count} lines of {when}: {}", unknown.len(), code.trim()),
        };
        builder::omit_at(step, *line, OmissionKind::Script, &text::one_line(&what, 140), session);
    }
}

/// Takes a statement before the request that sets a variable to the time.
fn set_before(statement: &str, step: &mut ImportedStep, session: &mut ImportSession) -> bool {
    let Some(arguments) = SETTERS.iter().find_map(|setter| statement.strip_prefix(setter)) else { return false };
    let found = arguments.strip_suffix(')').and_then(|arguments| arguments.split_once(','));
    let Some((name, value)) = found.and_then(|(name, value)| Some((string(name)?, value))) else { return false };
    let compact: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let expression = match compact.as_str() {
        "Date.now()" | "Date.now().toString()" | "newDate().getTime()" | "String(Date.now())" => {
            "{{newDate dateFormat \"%s000\"}}"
        }
        "Math.floor(Date.now()/1000)" | "Math.round(Date.now()/1000)" | "Math.floor(newDate().getTime()/1000)" => {
            "{{newDate dateFormat \"%s\"}}"
        }
        "newDate().toISOString()" => "{{newDate}}",
        _ => return false,
    };
    let Ok(template) = Template::parse(expression) else { return false };
    let definition = VariableDefinition { name: session.names.name(name), value: ScalarValue::Text(template) };
    step.request.options.push(RequestOption {
        name: OptionName::Variable,
        value: OptionValue::Variable(definition),
        position: TextPosition::default(),
    });
    true
}

/// Statements of a line.
fn statements(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').map(str::trim).filter(|statement| !statement.is_empty())
}

/// Whether a statement only surrounds others: the name of a test, a closing brace.
fn is_frame(statement: &str) -> bool {
    let starts = ["pm.test(", "client.test(", "test("];
    let is_opening = starts.iter().any(|start| statement.starts_with(start))
        && (statement.ends_with('{') || statement.ends_with("=>"));
    is_opening || statement.chars().all(|c| "(){};, ".contains(c))
}

/// What stands before the first function of a statement, and its body: `() => ...`, `function () {...`, however spaced.
fn function_body(statement: &str) -> Option<(&str, &str)> {
    let of_arrow = statement.split_once("=>");
    let of_word = statement.split_once("function").and_then(|(before, after)| {
        let (_, body) = after.trim_start().strip_prefix('(')?.split_once(')')?;
        Some((before, body.trim_start().strip_prefix('{')?))
    });
    [of_arrow, of_word].into_iter().flatten().min_by_key(|(before, _)| before.len())
}

fn is_log(statement: &str) -> bool {
    statement.starts_with("console.") || statement.starts_with("client.log(")
}

#[derive(Debug)]
struct ScriptReader {
    /// Variables of the script that are the body or a part of it, with their paths.
    bodies: BTreeMap<String, String>,
    response: ExpectedResponse,
    captured: Vec<String>,
}

impl ScriptReader {
    /// Takes a statement; whether its whole meaning is translated.
    fn statement(&mut self, statement: &str, session: &mut ImportSession) -> bool {
        let statement = statement.trim().trim_end_matches(';').trim();
        // The content of pm.test("...", () => ...) on one line.
        if let (Some((before, inner)), true) = (function_body(statement), statement.contains("test(")) {
            let inner = inner.trim().trim_start_matches('{').trim().trim_end_matches([')', '}', ' ']);
            let opened = inner.matches('(').count();
            let inner = format!("{inner}{}", ")".repeat(opened.saturating_sub(inner.matches(')').count())));
            return before.contains("test(") && !inner.is_empty() && self.statement(&inner, session);
        }
        self.declaration(statement) || self.setter(statement, session) || self.check(statement, session)
    }

    /// `const data = pm.response.json()`.
    fn declaration(&mut self, statement: &str) -> bool {
        let Some((name, value)) = statement.split_once('=') else { return false };
        let name =
            name.trim().trim_start_matches("const ").trim_start_matches("let ").trim_start_matches("var ").trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        match self.path(value.trim()).filter(|_| is_name) {
            Some(path) => {
                self.bodies.insert(name.to_owned(), path);
                true
            }
            None => false,
        }
    }

    /// JSONPath of an expression such as `data.items[0].id`.
    fn path(&self, expression: &str) -> Option<String> {
        let expression = expression.trim().trim_end_matches(';').trim();
        let length = expression.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')).count();
        let own = self.bodies.get_key_value(&expression[..length]).map(|(name, path)| (name.as_str(), path.as_str()));
        let known = BODIES.iter().map(|body| (*body, "$")).chain(own);
        // The longest name, since one may begin as another.
        let (rest, path) = known
            .filter_map(|(name, path)| {
                let rest = expression.strip_prefix(name)?;
                (rest.is_empty() || rest.starts_with(['.', '[', '?'])).then_some((rest, path))
            })
            .min_by_key(|(rest, _)| rest.len())?;
        if path.len() + rest.len() > MAX_PATH_BYTES {
            return None;
        }
        let mut path = path.to_owned();
        let mut rest = rest;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.')) {
                let length = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                if length == 0 {
                    return None;
                }
                path.push_str(&format!(".{}", &after[..length]));
                rest = &after[length..];
            } else {
                let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
                let inner = inner.trim();
                let is_index = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_digit());
                let is_name = inner.len() > 2
                    && (inner.starts_with('"') && inner.ends_with('"')
                        || inner.starts_with('\'') && inner.ends_with('\''))
                    && !inner[1..inner.len() - 1].contains(['"', '\'', '\\']);
                match (is_index, is_name) {
                    (true, _) => path.push_str(&format!("[{inner}]")),
                    (_, true) => path.push_str(&format!("['{}']", &inner[1..inner.len() - 1])),
                    _ => return None,
                }
                rest = after;
            }
        }
        // A method such as .toString() has brackets, and is not a member; the length of a list is none of JSON.
        (!path.ends_with(".length")).then_some(path)
    }

    /// `pm.environment.set("token", data.token)`.
    fn setter(&mut self, statement: &str, session: &mut ImportSession) -> bool {
        let Some(arguments) = SETTERS.iter().find_map(|setter| statement.strip_prefix(setter)) else { return false };
        let Some(arguments) = arguments.strip_suffix(')') else { return false };
        let Some((name, value)) = arguments.split_once(',') else { return false };
        let Some(name) = string(name) else { return false };
        let value = value.trim();
        let query = if let Some(path) = self.path(value) {
            QueryKind::Text(TextQuery::JsonPath, Template::text(path))
        } else if let Some(header) =
            value.strip_prefix("pm.response.headers.get(").and_then(|rest| string(rest.strip_suffix(')')?))
        {
            QueryKind::Text(TextQuery::Header, Template::text(header))
        } else {
            return false;
        };
        let name = session.names.name(name);
        if !self.captured.contains(&name) {
            let query = ResponseQuery { kind: query, position: TextPosition::default() };
            let capture =
                Capture { name: Template::text(name.as_str()), query, filters: Vec::new(), is_redacted: false };
            self.response.captures.push(capture);
            session.captured.insert(name.clone());
            self.captured.push(name);
        }
        true
    }

    /// Checks of the status and of values.
    fn check(&mut self, statement: &str, session: &mut ImportSession) -> bool {
        let compact: String = statement.chars().filter(|c| !c.is_whitespace()).collect();
        let status = [
            ("pm.response.to.have.status(", ")"),
            ("pm.expect(pm.response.code).to.equal(", ")"),
            ("pm.expect(pm.response.code).to.eql(", ")"),
            ("pm.expect(pm.response.code).to.be.equal(", ")"),
            ("expect(res.status).to.equal(", ")"),
            ("expect(res.getStatus()).to.equal(", ")"),
            ("client.assert(response.status===", ""),
            ("client.assert(response.status==", ""),
        ];
        for (start, end) in status {
            let Some(rest) = compact.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)) else { continue };
            let digits = rest.split([',', ')']).next().unwrap_or_default();
            if let Ok(code) = digits.parse::<u16>()
                && (100..=599).contains(&code)
            {
                self.response.status = ExpectedStatus::Code(code);
                return true;
            }
        }
        // tests["ok"] = responseCode.code === 200, of older collections.
        let older = compact.split_once("]=responseCode.code===").filter(|_| compact.starts_with("tests["));
        if let Some(code) =
            older.and_then(|(_, code)| code.parse::<u16>().ok()).filter(|code| (100..=599).contains(code))
        {
            self.response.status = ExpectedStatus::Code(code);
            return true;
        }
        let expectations = ["pm.expect(", "expect("];
        let Some(rest) = expectations.iter().find_map(|start| statement.strip_prefix(start)) else {
            return self.duration(&compact);
        };
        let Some((expression, rest)) = rest.split_once(").to.") else { return self.duration(&compact) };
        let (expression, count) = match expression.strip_suffix(".length") {
            Some(list) => (list, " count"),
            None => (expression, ""),
        };
        let Some(path) = self.path(expression) else { return self.duration(&compact) };
        let query = format!("jsonpath {}{count}", serde_json::Value::from(path.as_str()));
        let rest = rest.trim();
        if let Some(name) = rest.strip_prefix("have.property(").and_then(|rest| string(rest.strip_suffix(')')?)) {
            let path = serde_json::Value::from(format!("{path}['{name}']"));
            return !name.contains('\'') && self.assert(&format!("jsonpath {path} exists"));
        }
        // A value that a script has captured keeps its type; those of environments are texts.
        let mut value = |name: &str| {
            let name = session.names.name(name);
            let is_captured = session.captured.contains(&name);
            if is_captured { format!("{{{{{name}}}}}") } else { format!("\"{{{{{name}}}}}\"") }
        };
        match predicate(rest, &mut value) {
            Some(predicate) => self.assert(&format!("{query} {predicate}")),
            None => false,
        }
    }

    /// A limit of the response time.
    fn duration(&mut self, compact: &str) -> bool {
        let limit = compact.strip_prefix("pm.expect(pm.response.responseTime).to.be.below(");
        match limit.and_then(|limit| limit.strip_suffix(')')).and_then(|limit| limit.parse::<u32>().ok()) {
            Some(limit) => self.assert(&format!("duration < {limit}")),
            None => false,
        }
    }

    fn assert(&mut self, text: &str) -> bool {
        let assertion = Assertion::parse(text);
        assertion.map(|assertion| self.response.asserts.push(assertion)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(script: &str) -> (String, usize) {
        let mut session = ImportSession::default();
        let mut step = ImportedStep::default();
        let lines: Vec<(u32, String)> = (1..).zip(script.lines()).map(|(line, code)| (line, code.to_owned())).collect();
        take(&lines, true, &mut step, &mut session);
        let response = step.response.map(|response| response.to_string()).unwrap_or_default();
        (response, session.import.omissions.len())
    }

    #[test]
    fn captures_and_checks_are_translated() {
        let script = "// token\nconst data = pm.response.json();\npm.environment.set(\"token\", data.token);\n\
            var first = data.items[0];\npm.collectionVariables.set('id', first[\"id\"])\n\
            pm.test(\"ok\", function(){pm.response.to.have.status(201);});\n\
            pm.test('name', () => pm.expect(data.name).to.eql('tea'));\n";
        let expected = "HTTP 201\n[Captures]\ntoken: jsonpath \"$.token\"\nid: jsonpath \"$.items[0]['id']\"\n[Asserts]\n\
            jsonpath \"$.name\" == \"tea\"\n";
        assert_eq!(read(script), (expected.to_owned(), 0));
        let jetbrains = "client.global.set(\"token\", response.body.token);\nclient.log(\"x\");";
        assert_eq!(read(jetbrains), ("HTTP *\n[Captures]\ntoken: jsonpath \"$.token\"\n".to_owned(), 0));
    }

    #[test]
    fn comparisons_lengths_and_variables_are_translated() {
        let script = "const json = pm.response.json();\npm.environment.set('id', json.id);\n\
            pm.test('many', function () {\n  pm.expect(json.items.length).to.be.above(5);\n});\n\
            pm.expect(json.user).to.eql(pm.environment.get('user'));\n\
            pm.expect(json.id).to.equal(pm.environment.get(\"id\"));\npm.expect(json.items).to.have.lengthOf(6);\n";
        let expected = "HTTP *\n[Captures]\nid: jsonpath \"$.id\"\n[Asserts]\njsonpath \"$.items\" count > 5\n\
            jsonpath \"$.user\" == \"{{user}}\"\njsonpath \"$.id\" == {{id}}\njsonpath \"$.items\" count == 6\n";
        assert_eq!(read(script), (expected.to_owned(), 0));
        assert_eq!(read("pm.environment.set('n', pm.response.json().items.length)").1, 1, "a capture has no length");
    }

    #[test]
    fn the_time_is_set_before_the_request() {
        let mut session = ImportSession::default();
        let mut step = ImportedStep::default();
        let code =
            "pm.environment.set('now', Date.now());\npm.variables.set(\"s\", Math.floor(Date.now() / 1000))\nsign()";
        let lines: Vec<(u32, String)> = (1..).zip(code.lines()).map(|(line, code)| (line, code.to_owned())).collect();
        take(&lines, false, &mut step, &mut session);
        let options: Vec<String> = step.request.options.iter().map(ToString::to_string).collect();
        let expected =
            ["variable: now=\"{{newDate dateFormat \"%s000\"}}\"", "variable: s=\"{{newDate dateFormat \"%s\"}}\""];
        assert_eq!(options, expected);
        let what = &session.import.omissions[0].what;
        assert_eq!(what, "1 of 3 lines of a script before the request: sign()");
    }

    #[test]
    fn a_statement_that_is_not_known_is_an_omission() {
        let (response, omissions) = read("if (x) {\n pm.environment.set('a', pm.response.json().a)\n}");
        assert_eq!(omissions, 1);
        assert!(response.contains("a: jsonpath \"$.a\""), "{response}");
        assert_eq!(read("pm.environment.set('a', Math.random())").1, 1);
        assert_eq!(read("pm.environment.set('a', data.map(x => x.id))").1, 1);
    }
}

//! Requests of a block: the request line, headers, the body, and scripts after it.

use std::borrow::Cow;

use weir_base::percent::percent_encode_byte;
use weir_hurl::{ExpectedResponse, ExpectedStatus, OptionName, Template};

use super::block::HttpBlock;
use super::reference::ResponseReferences;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::curl;
use crate::graphql;
use crate::omission::OmissionKind;
use crate::placeholder;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::script;
use crate::session::ImportSession;
use crate::text;

/// Protocols that JetBrains writes as methods.
const OTHER_PROTOCOLS: [&str; 4] = ["WEBSOCKET", "GRPC", "RSOCKET", "GRAPHQLWS"];

pub(super) fn read(
    block: &HttpBlock<'_>,
    references: &mut ResponseReferences,
    session: &mut ImportSession,
    scenario: &mut ImportedScenario,
) {
    block.comments.iter().for_each(|comment| session.note(comment));
    let Some((line, first)) = block.lines.first().copied() else {
        // A script of the whole file.
        if let Some((line, code)) = block.script_before.iter().find(|(_, code)| script::has_code(code)) {
            session.omit(*line, OmissionKind::Script, format!("a script of the file: {}", code.trim()));
        }
        return;
    };
    let first = first.trim();
    if first.starts_with("curl ") {
        let command: Vec<&str> = block.lines.iter().map(|(_, line)| *line).collect();
        curl::add(&command.join("\n"), line, session, scenario);
        return;
    }
    if first.starts_with("import ") || first.starts_with("run ") {
        for (line, text) in block.lines.iter().filter(|(_, text)| !text.trim().is_empty()) {
            session.omit(*line, OmissionKind::Request, text);
        }
        return;
    }
    let mut step = ImportedStep { line, name: block.title.to_owned(), ..ImportedStep::default() };
    let mut reader = MessageReader { references, session };
    let rest = reader.request_line(block, first, &mut step);
    annotations(block, &mut step, reader.session);
    let body_start = reader.headers(&block.lines, rest, &mut step);
    let is_graphql = step
        .request
        .header("X-REQUEST-TYPE")
        .map(text::source)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("graphql"));
    let is_graphql = is_graphql || first.starts_with("GRAPHQL ");
    let body = reader.take_directives(block.lines.get(body_start..).unwrap_or_default(), &mut step);
    reader.body(&body, is_graphql, &mut step);
    basic_of_words(&mut step);
    builder::take_basic_auth(&mut step);
    if !block.script_before.is_empty() {
        script::take(&block.script_before, false, &mut step, reader.session);
    }
    if !block.script_after.is_empty() {
        script::take(&block.script_after, true, &mut step, reader.session);
    }
    for (line, check) in &block.checks {
        httpyac_check(*line, check, &mut step, reader.session);
    }
    session.push(scenario, step);
}

pub(super) struct MessageReader<'a> {
    references: &'a mut ResponseReferences,
    pub(super) session: &'a mut ImportSession,
}

impl MessageReader<'_> {
    pub(super) fn template(&mut self, text: &str, line: u32) -> Template {
        let references = &mut *self.references;
        placeholder::between("{{", "}}", text, line, self.session, &mut |inner, line, session| {
            references.take(inner, line, session).or_else(|| placeholder::expression(inner, line, session))
        })
    }

    /// Reads the first line with the lines that go on with its URL; returns the index of the next one.
    fn request_line(&mut self, block: &HttpBlock<'_>, first: &str, step: &mut ImportedStep) -> usize {
        let (method, url) = match first.split_once(char::is_whitespace) {
            Some((method, rest)) if method.chars().all(|c| c.is_ascii_uppercase()) || is_method(method) => {
                (method, rest)
            }
            _ => ("GET", first),
        };
        let mut url = url.trim().to_owned();
        let mut next = 1;
        while let Some((_, line)) = block.lines.get(next) {
            let is_indented = line.starts_with([' ', '\t']);
            let trimmed = line.trim();
            if trimmed.is_empty() || !(is_indented || trimmed.starts_with(['?', '&'])) || trimmed.starts_with('#') {
                break;
            }
            url.push_str(trimmed);
            next += 1;
        }
        for version in [" HTTP/1.1", " HTTP/2", " HTTP/2 (Prior Knowledge)", " HTTP/1.0", " HTTP/3"] {
            url = url.strip_suffix(version).unwrap_or(&url).trim_end().to_owned();
        }
        let mut template = self.template(&url, step.line);
        // A path belongs to the host of the header.
        if url.starts_with('/')
            && let Some((line, host)) = block.lines.iter().skip(next).find_map(|(line, text)| {
                let (name, value) = text.split_once(':')?;
                name.trim().eq_ignore_ascii_case("host").then_some((*line, value.trim()))
            })
        {
            template = text::concat([&Template::text("http://"), &self.template(host, line), &template]);
        }
        let method = if method == "GRAPHQL" { "POST" } else { method };
        if OTHER_PROTOCOLS.contains(&method) {
            step.request.method = "GET".to_owned();
            step.request.url = template;
            step.is_disabled = true;
            let what = format!("{method} {url}");
            builder::omit(step, OmissionKind::Request, &what, self.session);
        } else {
            builder::set_line(step, method, &template, self.session);
        }
        next
    }

    /// Reads headers up to an empty line; returns the index of the line after it.
    fn headers(&mut self, lines: &[(u32, &str)], start: usize, step: &mut ImportedStep) -> usize {
        for (index, (line, text)) in lines.iter().enumerate().skip(start) {
            let trimmed = text.trim();
            if trimmed.is_empty() {
                return index + 1;
            }
            if trimmed.starts_with('#') || trimmed.starts_with("//") {
                continue;
            }
            if trimmed.starts_with(['>', '<']) {
                return index;
            }
            match trimmed.split_once(':') {
                Some((name, value)) => {
                    let value = self.template(value.trim(), *line);
                    builder::add_header(step, name, &value, self.session);
                }
                None => {
                    let what = format!("the line {trimmed} among headers");
                    builder::omit_at(step, *line, OmissionKind::Header, &what, self.session);
                }
            }
        }
        lines.len()
    }

    /// Takes scripts and redirections out of a body.
    fn take_directives<'b>(&mut self, lines: &[(u32, &'b str)], step: &mut ImportedStep) -> Vec<(u32, &'b str)> {
        let mut body = Vec::new();
        let mut scripts: Vec<(u32, String)> = Vec::new();
        let mut is_script = false;
        for (line, text) in lines {
            let trimmed = text.trim();
            if is_script {
                let (code, is_end) = trimmed.split_once("%}").map_or((trimmed, false), |(code, _)| (code, true));
                scripts.push((*line, code.to_owned()));
                is_script = !is_end;
            } else if let Some(code) = trimmed.strip_prefix("> {%") {
                let (code, is_end) = code.split_once("%}").map_or((code, false), |(code, _)| (code, true));
                scripts.push((*line, code.to_owned()));
                is_script = !is_end;
            } else if trimmed.starts_with(">>") || trimmed.starts_with("<> ") {
                // Where an IDE writes the response to.
            } else if let Some(file) = trimmed.strip_prefix("> ").filter(|file| file.trim().ends_with(".js")) {
                let what = format!("the script {file}");
                builder::omit_at(step, *line, OmissionKind::Script, &what, self.session);
            } else if !(trimmed.starts_with('#') || trimmed.starts_with("//")) {
                // The REST Client sends no comments, wherever they stand.
                body.push((*line, *text));
            }
        }
        if !scripts.is_empty() {
            script::take(&scripts, true, step, self.session);
        }
        while body.last().is_some_and(|(_, text)| text.trim().is_empty()) {
            body.pop();
        }
        body
    }

    fn body(&mut self, lines: &[(u32, &str)], is_graphql: bool, step: &mut ImportedStep) {
        let Some((line, first)) = lines.first().copied() else { return };
        let media_type = step.request.header("Content-Type").map(text::source).unwrap_or_default().to_ascii_lowercase();
        if is_graphql {
            let end = lines.iter().position(|(_, text)| text.trim().is_empty()).unwrap_or(lines.len());
            let joined = |lines: &[(u32, &str)]| lines.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
            let (query, variables) = (joined(&lines[..end]), joined(lines.get(end..).unwrap_or_default()));
            step.request.remove_header("X-REQUEST-TYPE");
            step.request.add_header("Content-Type", Template::text("application/json"));
            step.request.body = graphql::body(&query, &variables, line, self.session);
            return;
        }
        if media_type.starts_with("multipart/") {
            self.multipart(lines, &media_type, step);
            return;
        }
        if let (1, Some(file)) = (lines.len(), file_name(first))
            && !has_variables(first)
        {
            step.request.body = ImportedBody::File(file.to_owned());
            return;
        }
        let is_form = media_type.split(';').next().unwrap_or_default().trim() == "application/x-www-form-urlencoded";
        let mut texts: Vec<Cow<'_, str>> = Vec::with_capacity(lines.len());
        for (line, text) in lines {
            let Some(file) = file_name(text) else {
                texts.push(Cow::Borrowed(text));
                continue;
            };
            match self.session.read_file(file).and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(content) => texts.push(Cow::Owned(content)),
                None => {
                    let what = format!("the file {file} within a body");
                    builder::omit_at(step, *line, OmissionKind::File, &what, self.session);
                }
            }
        }
        let joined = if is_form { form_text(&texts) } else { texts.join("\n") };
        let body = self.template(&joined, line);
        let is_json = media_type.is_empty() && first.trim_start().starts_with(['{', '[']);
        if is_json {
            step.request.body = ImportedBody::Text { text: body, media_type: "application/json".to_owned() };
        } else {
            builder::text_body(step, body);
        }
    }
}

/// Whether the variables in a file are replaced: `<@ ./body.json`.
fn has_variables(line: &str) -> bool {
    line.trim_start().starts_with("<@")
}

/// Form over several lines, as editors send it: without line ends beside an `&`, and what a URL cannot have encoded.
fn form_text(lines: &[Cow<'_, str>]) -> String {
    let mut text = String::new();
    for line in lines {
        let line = line.trim();
        if !text.is_empty() && !text.ends_with('&') && !line.starts_with('&') {
            text.push('\n');
        }
        // JetBrains writes `name = value &`.
        let pairs = line.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if name.ends_with(' ') && value.starts_with(' ') => {
                format!("{}={}", name.trim(), value.trim())
            }
            _ if pair.trim().is_empty() => String::new(),
            _ => pair.to_owned(),
        });
        let pairs: Vec<String> = pairs.collect();
        text.push_str(&pairs.join("&"));
    }
    let text = text.trim_end_matches('&');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Without an end of a variable nothing is sought.
    let after_last_end = text.len() - text.rfind("}}").unwrap_or(0);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        // Variables are encoded when they have their values, or are not.
        let is_open = rest.len() > after_last_end;
        if let Some(length) = rest.strip_prefix("{{").filter(|_| is_open).and_then(|inner| inner.find("}}")) {
            out.push_str(&rest[..length + 4]);
            rest = &rest[length + 4..];
            continue;
        }
        let is_escape = c == '%' && after.get(..2).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        if (c.is_ascii_graphic() && !"\"%<>\\^`{|}".contains(c)) || is_escape || c == '\n' {
            out.push(c);
        } else {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push_str(percent_encode_byte(byte)));
        }
        rest = after;
    }
    out
}

/// Name of the file of `< ./body.json`, `<@ ./body.json` or `<@latin1 ./body.json`.
pub(super) fn file_name(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('<')?;
    let rest = match rest.strip_prefix('@') {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-'),
        None => rest,
    };
    let name = rest.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty() && !name.contains(['<', '>'])).then_some(name)
}

fn is_method(word: &str) -> bool {
    let methods = ["get", "post", "put", "patch", "delete", "head", "options"];
    methods.iter().any(|method| word.eq_ignore_ascii_case(method))
}

fn annotations(block: &HttpBlock<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
    let mut follows = true;
    for (line, annotation) in &block.annotations {
        let (key, value) = annotation.split_once([' ', '\t', '=', ':']).unwrap_or((annotation, ""));
        match (key, value.trim().trim_start_matches('=').trim()) {
            ("name", name) => step.name = name.to_owned(),
            ("no-redirect", _) => follows = false,
            ("no-log" | "no-cookie-jar" | "note" | "no-auto-encoding" | "title" | "description" | "lang", _) => {}
            ("timeout" | "connection-timeout", value) => {
                let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
                let unit = value[digits.len()..].trim();
                let factor = match unit {
                    "ms" => 1,
                    "m" => 60_000,
                    _ => 1000,
                };
                if let (Ok(time), "timeout") = (digits.parse::<u64>(), key) {
                    step.request.set_duration(OptionName::MaxTime, time.saturating_mul(factor).clamp(1, 86_400_000));
                }
            }
            ("prompt", value) => {
                let variable = value.split_whitespace().next().unwrap_or_default();
                session.note(format!("{variable}: a value that the editor asks for"));
            }
            _ => builder::omit_at(step, *line, OmissionKind::Setting, &format!("@{annotation}"), session),
        }
    }
    // Both editors follow redirects.
    if follows && !step.is_disabled {
        step.request.set_flag(OptionName::Location);
    }
}

/// `status == 200` after `??`; other checks are omissions.
fn httpyac_check(line: u32, check: &str, step: &mut ImportedStep, session: &mut ImportSession) {
    let status = check.strip_prefix("status").and_then(|rest| rest.trim_start().strip_prefix("=="));
    match status.and_then(|code| code.trim().parse::<u16>().ok()).filter(|code| (100..600).contains(code)) {
        Some(code) => {
            step.response.get_or_insert_with(ExpectedResponse::default).status = ExpectedStatus::Code(code);
        }
        None => builder::omit_at(step, line, OmissionKind::Check, &format!("?? {check}"), session),
    }
}

/// `Authorization: Basic user password` of the REST Client.
fn basic_of_words(step: &mut ImportedStep) {
    let Some(value) = step.request.header("Authorization").cloned() else { return };
    let Some(rest) = text::start(&value).strip_prefix("Basic ").map(str::to_owned) else { return };
    let mut whole = value.clone();
    if let Some(weir_hurl::TemplatePart::Text(first)) = whole.parts.first_mut() {
        *first = rest.trim_start().to_owned();
    }
    let whole = text::from_parts(whole.parts);
    let split = [':', ' '].into_iter().find_map(|separator| split_template(&whole, separator));
    if let Some((user, password)) = split {
        step.request.remove_header("Authorization");
        step.request.basic_auth = Some(field(user, builder::trimmed(&password)));
    }
}

/// Text before and after the first separator in a fixed part.
fn split_template(template: &Template, separator: char) -> Option<(Template, Template)> {
    for (index, part) in template.parts.iter().enumerate() {
        if let weir_hurl::TemplatePart::Text(fixed) = part
            && let Some((before, after)) = fixed.split_once(separator)
        {
            let text = |text: &str| weir_hurl::TemplatePart::Text(text.to_owned());
            let first = template.parts[..index].iter().cloned().chain([text(before)]);
            let second = [text(after)].into_iter().chain(template.parts[index + 1..].iter().cloned());
            let (first, second) = (text::from_parts(first), text::from_parts(second));
            return (!text::is_empty(&first)).then_some((first, second));
        }
    }
    None
}

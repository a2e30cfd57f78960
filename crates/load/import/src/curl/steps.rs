//! Steps of the requests of a command.

use weir_hurl::{OptionName, OptionValue, RequestOption, Template, TextPosition};

use super::command::CurlRequest;
use super::data::{self, DataPiece, DataReader};
use super::form::FormSource;
use super::glob;
use super::marks::{MarkTable, MarkedContent};
use super::shell_command::ShellCommand;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::multipart::{self, PartContent};
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, field};
use crate::session::ImportSession;
use crate::text;

/// Most URLs of a command.
const MAX_URLS: usize = 2_000;

/// Most bytes of the steps of a command.
const MAX_STEPS_BYTES: usize = 4 << 20;

/// Content-Type of data without one of its own.
const FORM: &str = "application/x-www-form-urlencoded";

/// Headers that weir sends by itself, which curl can leave out.
const DEFAULT_HEADERS: [&str; 2] = ["accept", "user-agent"];

impl CurlRequest {
    /// Adds a step for each URL.
    pub(super) fn finish(
        mut self,
        shell: &ShellCommand,
        marks: &MarkTable,
        session: &mut ImportSession,
        scenario: &mut ImportedScenario,
    ) {
        if self.urls.is_empty() {
            return session.omit(self.step.line, OmissionKind::Request, "a curl command without a URL");
        }
        let bodies =
            [self.is_head, !self.data.is_empty() && !self.is_get, !self.parts.is_empty(), !self.uploads.is_empty()];
        if bodies.into_iter().filter(|has| *has).count() > 1 {
            let what = "more than one of -I, -d, -F and -T, which curl rejects";
            self.omit(OmissionKind::Setting, what, session);
        }
        let method = self.sent_method(session);
        self.add_headers(marks, session);
        let query = std::mem::take(&mut self.query);
        let mut query = self.joined(&query, shell, marks, session);
        let data = std::mem::take(&mut self.data);
        if self.is_get {
            let more = self.joined(&data, shell, marks, session);
            query = [query, more].into_iter().flatten().reduce(|one, other| one + "&" + &other);
        }
        let upload = self.uploads.first().cloned();
        if let Some(file) = &upload {
            self.upload(file, shell, marks, session);
        } else if !self.parts.is_empty() {
            self.add_parts(shell, marks, session);
        } else if !data.is_empty() && !self.is_get {
            self.add_data(&data, shell, marks, session);
        }
        builder::take_basic_auth(&mut self.step);
        let mut urls = std::mem::take(&mut self.urls);
        // Each URL is a step with all that the others have.
        let step_bytes = self.step.request.size() + query.as_ref().map_or(0, String::len);
        let max_urls = (MAX_STEPS_BYTES / (step_bytes + 1)).clamp(1, MAX_URLS);
        if urls.len() > max_urls {
            self.omit(OmissionKind::Request, &format!("{} more URLs", urls.len() - max_urls), session);
            urls.truncate(max_urls);
        }
        let mut notes = std::mem::take(&mut self.step.notes);
        let mut pushed = 0;
        for (number, url) in urls.iter().enumerate() {
            let made = if self.has_globs { glob::expand(url) } else { Ok(vec![url.clone()]) };
            let (urls, problem) = match made {
                Ok(urls) => (urls, None),
                Err(problem) => (vec![url.clone()], Some(problem)),
            };
            for url in urls {
                pushed += 1;
                if pushed > max_urls {
                    continue;
                }
                let url = match &query {
                    Some(query) => with_query(&url, query),
                    None => url,
                };
                let url = match upload.as_ref().filter(|file| number == 0 && *file != "-") {
                    Some(file) => with_file_name(&url, file),
                    None => url,
                };
                let mut step = self.step.clone();
                step.notes = std::mem::take(&mut notes);
                if url.contains(' ') {
                    builder::omit(&mut step, OmissionKind::Setting, "a space in the URL, which curl rejects", session);
                }
                builder::set_line(&mut step, &method, &marks.template(&url), session);
                if let Some(problem) = &problem {
                    step.is_disabled = true;
                    let what = format!("{}: {problem}", step.request.line());
                    builder::omit(&mut step, OmissionKind::Request, &what, session);
                }
                if number > 0 && upload.is_some() {
                    let what = "the upload, which is for the first URL alone";
                    builder::omit(&mut step, OmissionKind::Body, what, session);
                }
                session.push(scenario, step);
            }
        }
        if pushed > max_urls {
            session.omit(self.step.line, OmissionKind::Request, format!("{} more URLs", pushed - max_urls));
        }
    }

    fn sent_method(&mut self, session: &mut ImportSession) -> String {
        let implied = match () {
            () if self.is_head => "HEAD",
            () if self.is_get => "GET",
            () if !self.uploads.is_empty() => "PUT",
            () if !self.data.is_empty() || !self.parts.is_empty() => "POST",
            () => "GET",
        };
        let Some(method) = self.method.take() else { return implied.to_owned() };
        let upper = method.to_ascii_uppercase();
        if upper != method {
            self.omit(
                OmissionKind::Setting,
                &format!("the method {method} as it is written, {upper} instead"),
                session,
            );
        }
        method
    }

    /// Headers as curl has them: those of `-H` replace its own of the same name.
    fn add_headers(&mut self, marks: &MarkTable, session: &mut ImportSession) {
        let given = std::mem::take(&mut self.headers);
        let is_given = |name: &str| given.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in &given {
            let Some(value) = value else {
                match name.to_ascii_lowercase().as_str() {
                    known if DEFAULT_HEADERS.contains(&known) => self.remove_default(name),
                    "host" => self.omit(OmissionKind::Header, "that there is no header Host", session),
                    _ => {}
                }
                continue;
            };
            builder::add_header(&mut self.step, &marks.shown(name), &marks.template(value), session);
        }
        let cookies = (!self.cookies.is_empty()).then(|| self.cookies.join(";"));
        let bearer = self.bearer.take().map(|token| format!("Bearer {token}"));
        let range = self.range.take().map(|range| format!("bytes={range}"));
        let referer = self.referer.take().map(|url| url.trim_end_matches(";auto").to_owned());
        let json = self.is_json.then(|| "application/json".to_owned());
        let own = [
            ("User-Agent", self.user_agent.take()),
            ("Referer", referer.filter(|url| !url.is_empty())),
            ("Authorization", bearer),
            ("Range", range),
            ("Cookie", cookies),
            ("Content-Type", json.clone()),
            ("Accept", json),
        ];
        for (name, value) in own {
            match value.filter(|_| !is_given(name)) {
                Some(value) if value.is_empty() => self.remove_default(name),
                Some(value) => builder::add_header(&mut self.step, name, &marks.template(&value), session),
                None => {}
            }
        }
        if !is_given("Content-Type") && !self.data.is_empty() && !self.is_get {
            self.step.request.add_header("Content-Type", Template::text(FORM));
        }
        if let Some(user) = self.user.take().filter(|_| !is_given("Authorization")) {
            let (name, password) = user.split_once(':').unwrap_or_else(|| {
                self.omit(OmissionKind::Authentication, "the password, for which curl asks", session);
                (&user, "")
            });
            self.step.request.basic_auth = Some(field(marks.template(name), marks.template(password)));
        }
    }

    /// Leaves out a header that weir sends by itself.
    fn remove_default(&mut self, name: &str) {
        let value = OptionValue::Text(Template::text(name));
        let position = TextPosition::default();
        self.step.request.options.push(RequestOption { name: OptionName::NoHeader, value, position });
    }

    /// Text of pieces of data, one after another; `None` without any.
    fn joined(
        &mut self,
        pieces: &[DataPiece],
        shell: &ShellCommand,
        marks: &MarkTable,
        session: &mut ImportSession,
    ) -> Option<String> {
        let mut text: Option<String> = None;
        for piece in pieces {
            let reader = DataReader { input: shell.input.as_ref(), session, marks };
            match (piece.text(&reader), &mut text) {
                (Ok(more), Some(text)) => {
                    text.push_str(if piece.is_joined { "&" } else { "" });
                    text.push_str(&more);
                }
                (Ok(more), text @ None) => *text = Some(more),
                (Err(name), _) => self.omit(OmissionKind::Body, &format!("the data of {name}"), session),
            }
        }
        text
    }

    fn add_data(&mut self, data: &[DataPiece], shell: &ShellCommand, marks: &MarkTable, session: &mut ImportSession) {
        let reader = DataReader { input: shell.input.as_ref(), session, marks };
        if let [piece] = data
            && let Some(file) = piece.whole_file()
            && let Some(path) = reader.path(file)
        {
            let content = if piece.is_stripped { reader.content(file).ok() } else { None };
            let has_line_ends = content.as_ref().map(|content| content.contains(['\r', '\n', '\0']));
            if !piece.is_stripped || has_line_ends != Some(true) {
                if piece.is_stripped && has_line_ends.is_none() {
                    let what = format!("that -d takes the line ends out of {path}");
                    self.omit(OmissionKind::Body, &what, session);
                }
                self.step.request.body = ImportedBody::File(path);
                return;
            }
        }
        let Some(joined) = self.joined(data, shell, marks, session) else { return };
        match marks.content(&joined) {
            MarkedContent::Bytes(bytes) => self.step.request.body = ImportedBody::Bytes(bytes),
            MarkedContent::Text { text, is_whole } => {
                if !is_whole {
                    let what = "bytes that are not UTF-8 beside variables";
                    self.omit(OmissionKind::Body, what, session);
                }
                self.set_text(text);
            }
        }
    }

    /// Sets a text as the body. A shell encodes no values of variables, so that a text with one is not a form.
    fn set_text(&mut self, text: Template) {
        if text.as_text().is_some() {
            return builder::text_body(&mut self.step, text);
        }
        let media_type = self.step.request.header("Content-Type").map(text::source).unwrap_or_default();
        self.step.request.body = ImportedBody::Text { text, media_type };
    }

    fn add_parts(&mut self, shell: &ShellCommand, marks: &MarkTable, session: &mut ImportSession) {
        let parts = std::mem::take(&mut self.parts);
        let mut made = Vec::new();
        for part in parts {
            let reader = DataReader { input: shell.input.as_ref(), session, marks };
            let name = marks.shown(&part.name);
            let content = match &part.source {
                FormSource::Text(text) => Ok(PartContent::Text(marks.template(text))),
                FormSource::Upload(file) if file == "-" => {
                    reader.content(file).map(|text| PartContent::Text(marks.template(&text)))
                }
                FormSource::Upload(file) => Ok(PartContent::File(marks.shown(file))),
                FormSource::TextOf(file) => reader.content(file).map(|text| PartContent::Text(marks.template(&text))),
            };
            for unknown in &part.unknown {
                self.omit(OmissionKind::Body, &format!("{} of the part {name}", marks.shown(unknown)), session);
            }
            match content {
                Ok(content) => made.push(part.with(content, marks)),
                Err(source) => self.omit(OmissionKind::Body, &format!("the part {name} of {source}"), session),
            }
        }
        let given = self.step.request.header("Content-Type").map(text::source);
        if let Some(given) = given.filter(|given| given.trim() != "multipart/form-data") {
            self.omit(OmissionKind::Header, &format!("Content-Type {given} of a form with parts"), session);
        }
        multipart::set_body(&mut self.step, &made, session);
    }

    fn upload(&mut self, file: &str, shell: &ShellCommand, marks: &MarkTable, session: &mut ImportSession) {
        if self.uploads.len() > 1 || file.contains(['{', '[']) {
            self.omit(OmissionKind::Body, "uploads of several files", session);
        }
        let reader = DataReader { input: shell.input.as_ref(), session, marks };
        match reader.path(file).filter(|_| file != ".") {
            Some(path) => self.step.request.body = ImportedBody::File(path),
            None => match reader.content("-") {
                Ok(content) => match marks.content(&content) {
                    MarkedContent::Bytes(bytes) => self.step.request.body = ImportedBody::Bytes(bytes),
                    MarkedContent::Text { text, .. } => self.set_text(text),
                },
                Err(source) => self.omit(OmissionKind::Body, &format!("the upload of {source}"), session),
            },
        }
    }
}

/// URL with more of a query, before its fragment.
fn with_query(url: &str, query: &str) -> String {
    let (start, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let separator = if start.contains('?') { "&" } else { "?" };
    format!("{start}{separator}{query}{fragment}")
}

/// URL of an upload: one that ends with a slash, or has no path, gets the name of the file.
fn with_file_name(url: &str, file: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (start, rest) = url.split_at(end);
    let name = data::encode(multipart::base_name(file)).replace('+', "%20");
    let after_scheme = start.split_once("://").map_or(start, |(_, after)| after);
    match after_scheme.contains('/') {
        false => format!("{start}/{name}{rest}"),
        true if start.ends_with('/') => format!("{start}{name}{rest}"),
        true => url.to_owned(),
    }
}

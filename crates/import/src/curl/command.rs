//! Commands of cURL as steps.

use weir_hurl::{
    FieldTemplate, MultipartField, MultipartValue, OptionCount, OptionName, OptionValue, Template, Templated,
};

use super::options::{CurlFlag, long_flag, long_name};
use super::shell::ShellCommand;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

/// Content-Type of data without one of its own.
const FORM: &str = "application/x-www-form-urlencoded";

/// Options of one request so far.
#[derive(Debug, Default)]
struct CurlRequest {
    urls: Vec<Template>,
    method: Option<String>,
    headers: Vec<(String, Template)>,
    data: Vec<Template>,
    data_file: Option<String>,
    parts: Vec<MultipartField>,
    query: Vec<FieldTemplate>,
    user: Option<Template>,
    is_json: bool,
    is_get: bool,
    is_head: bool,
    upload: Option<String>,
    step: ImportedStep,
}

/// Adds the steps of a command, whose words are those after `curl`.
pub(super) fn read(shell: &ShellCommand, session: &mut ImportSession, scenario: &mut ImportedScenario) {
    let mut request = CurlRequest::at(shell.line);
    let mut words = shell.words.iter();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        let text = text::source(word);
        if only_urls || !text.starts_with('-') || text == "-" {
            request.urls.push(word.clone());
            continue;
        }
        if text == "--" {
            only_urls = true;
            continue;
        }
        let flags = flags(word, &text);
        for (name, attached) in flags {
            let Some(flag) = long_flag(name.trim_start_matches("no-")).or_else(|| long_flag(&name)) else {
                // An unknown flag may have a value; what looks like a URL is none.
                let shown = format!("the flag --{name}");
                builder::omit(&mut request.step, OmissionKind::Setting, &shown, session);
                continue;
            };
            if flag == CurlFlag::Next {
                request.finish(session, scenario);
                request = CurlRequest::at(shell.line);
                continue;
            }
            let value = match flag.takes_value() {
                true => attached.or_else(|| words.next().cloned()),
                false => None,
            };
            request.take(flag, &name, value.unwrap_or_default(), session);
        }
    }
    request.finish(session, scenario);
}

/// Long names of the flags of a word, and a value that is attached to the last one: `-sXPOST`.
fn flags(word: &Template, text: &str) -> Vec<(String, Option<Template>)> {
    if let Some(long) = text.strip_prefix("--") {
        return match long.split_once('=') {
            Some((name, _)) => vec![(name.to_owned(), Some(without_start(word, name.len() + 3)))],
            None => vec![(long.to_owned(), None)],
        };
    }
    let mut found = Vec::new();
    for (at, letter) in text.char_indices().skip(1) {
        let Some(name) = long_name(letter) else {
            found.push((letter.to_string(), None));
            continue;
        };
        let rest = at + letter.len_utf8();
        if long_flag(name).is_some_and(CurlFlag::takes_value) {
            found.push((name.to_owned(), (rest < text.len()).then(|| without_start(word, rest))));
            break;
        }
        found.push((name.to_owned(), None));
    }
    found
}

/// Word without its first bytes, which are in its first part.
fn without_start(word: &Template, bytes: usize) -> Template {
    let mut parts = word.parts.clone();
    if let Some(weir_hurl::TemplatePart::Text(first)) = parts.first_mut() {
        *first = first.get(bytes..).unwrap_or_default().to_owned();
    }
    text::from_parts(parts)
}

/// Text before and after the first occurrence of a character that is in the fixed beginning.
pub(super) fn split_at(word: &Template, separator: char) -> Option<(String, Template)> {
    let start = text::start(word);
    let at = start.find(separator)?;
    Some((start[..at].to_owned(), without_start(word, at + separator.len_utf8())))
}

impl CurlRequest {
    fn at(line: u32) -> Self {
        Self { step: ImportedStep { line, ..ImportedStep::default() }, ..Self::default() }
    }

    fn take(&mut self, flag: CurlFlag, name: &str, value: Template, session: &mut ImportSession) {
        let request = &mut self.step.request;
        match flag {
            CurlFlag::Method => self.method = Some(text::source(&value)),
            CurlFlag::Url => self.urls.push(value),
            CurlFlag::Header => match split_at(&value, ':') {
                Some((name, value)) => self.headers.push((name, builder::trimmed(&value))),
                None => match text::source(&value).strip_suffix(';') {
                    Some(name) => self.headers.push((name.to_owned(), Template::default())),
                    None => {
                        let what = format!("the header {}", text::source(&value));
                        builder::omit(&mut self.step, OmissionKind::Header, &what, session);
                    }
                },
            },
            CurlFlag::UserAgent => self.headers.push(("User-Agent".to_owned(), value)),
            CurlFlag::Referer => self.headers.push(("Referer".to_owned(), value)),
            CurlFlag::Bearer => {
                self.headers.push(("Authorization".to_owned(), text::concat([&Template::text("Bearer "), &value])));
            }
            CurlFlag::Cookie if text::source(&value).contains('=') => self.headers.push(("Cookie".to_owned(), value)),
            CurlFlag::Cookie => {
                let what = format!("cookies of the file {}", text::source(&value));
                builder::omit(&mut self.step, OmissionKind::File, &what, session);
            }
            CurlFlag::User => self.user = Some(value),
            CurlFlag::Digest => request.set_flag(OptionName::Digest),
            CurlFlag::Data | CurlFlag::DataBinary | CurlFlag::Json => {
                self.is_json |= flag == CurlFlag::Json;
                match text::source(&value).strip_prefix('@') {
                    Some(file) => self.data_file = Some(file.to_owned()),
                    None => self.data.push(value),
                }
            }
            CurlFlag::DataRaw => self.data.push(value),
            CurlFlag::DataUrlEncode => self.data.push(encoded(&value)),
            CurlFlag::Form | CurlFlag::FormString => self.take_part(&value, flag == CurlFlag::Form, session),
            CurlFlag::UrlQuery => {
                let (name, value) =
                    split_at(&value, '=').unwrap_or_else(|| (text::source(&value), Template::default()));
                self.query.push(field(Template::text(name), value));
            }
            CurlFlag::Get => self.is_get = true,
            CurlFlag::Head => self.is_head = true,
            CurlFlag::Location => request.set_flag(OptionName::Location),
            CurlFlag::LocationTrusted => request.set_flag(OptionName::LocationTrusted),
            CurlFlag::Compressed => request.set_flag(OptionName::Compressed),
            CurlFlag::PathAsIs => request.set_flag(OptionName::PathAsIs),
            CurlFlag::MaxTime | CurlFlag::RetryDelay => {
                let option = if flag == CurlFlag::MaxTime { OptionName::MaxTime } else { OptionName::RetryInterval };
                if let Some(seconds) = text::source(&value).parse::<f64>().ok().filter(|s| (0.001..=1e9).contains(s)) {
                    request.set_duration(option, (seconds * 1000.0) as u64);
                }
            }
            CurlFlag::MaxRedirects | CurlFlag::Retry => {
                let option = if flag == CurlFlag::Retry { OptionName::Retry } else { OptionName::MaxRedirs };
                if let Ok(count) = text::source(&value).parse::<u64>() {
                    request.set_option(option, OptionValue::Count(Templated::Literal(OptionCount::Finite(count))));
                }
            }
            CurlFlag::Upload => self.upload = Some(text::source(&value)),
            CurlFlag::Quiet | CurlFlag::QuietValue | CurlFlag::Next => {}
            CurlFlag::Connection | CurlFlag::ConnectionValue => {
                let value = text::source(&value);
                let gap = if value.is_empty() { "" } else { " " };
                let what = format!("the flag --{name}{gap}{value}, connections have flags of weir load");
                builder::omit(&mut self.step, OmissionKind::Setting, &what, session);
            }
        }
    }

    /// `name=value`, `name=@file;type=...` or `name=<file`.
    fn take_part(&mut self, part: &Template, takes_files: bool, session: &mut ImportSession) {
        let Some((name, value)) = split_at(part, '=') else {
            let what = format!("the part {}", text::source(part));
            builder::omit(&mut self.step, OmissionKind::Body, &what, session);
            return;
        };
        let source = text::source(&value);
        let file = if takes_files { source.strip_prefix(['@', '<']) } else { None };
        let value = match file {
            Some(file) => {
                let mut attributes = file.split(';');
                let name = attributes.next().unwrap_or_default().trim_matches('"');
                let content_type = attributes.find_map(|attribute| attribute.trim().strip_prefix("type="));
                MultipartValue::File { name: Template::text(name), content_type: content_type.map(Template::text) }
            }
            None => MultipartValue::Text(value),
        };
        self.parts.push(MultipartField { name: Template::text(name), value });
    }

    /// Adds a step for each URL.
    fn finish(self, session: &mut ImportSession, scenario: &mut ImportedScenario) {
        let Self { mut step, urls, .. } = self;
        if urls.is_empty() {
            session.omit(step.line, OmissionKind::Request, "a curl command without a URL");
            return;
        }
        let has_body = !self.data.is_empty() || self.data_file.is_some();
        let separator = Template::text("&");
        let joined = self.data.iter().enumerate().flat_map(|(index, data)| match index {
            0 => vec![data],
            _ => vec![&separator, data],
        });
        let data = text::concat(joined);
        let method = match (&self.method, self.upload.is_some()) {
            (Some(method), _) => method.clone(),
            _ if self.is_head => "HEAD".to_owned(),
            _ if self.is_get => "GET".to_owned(),
            (None, true) => "PUT".to_owned(),
            _ if has_body || !self.parts.is_empty() => "POST".to_owned(),
            _ => "GET".to_owned(),
        };
        step.request.query = self.query;
        let first = urls.first().cloned().unwrap_or_default();
        let first = if self.is_get && has_body { with_query(&first, &data) } else { first };
        builder::set_line(&mut step, &method, &first, session);
        for (name, value) in self.headers {
            builder::add_header(&mut step, &name, &value, session);
        }
        if self.is_json {
            step.request.add_header("Content-Type", Template::text("application/json"));
            step.request.add_header("Accept", Template::text("application/json"));
        }
        if let Some(user) = self.user {
            let (name, password) = split_at(&user, ':').unwrap_or_else(|| (text::source(&user), Template::default()));
            step.request.basic_auth = Some(field(Template::text(name), password));
        }
        if let Some(file) = self.upload {
            step.request.body = ImportedBody::File(file);
        } else if let Some(file) = self.data_file {
            step.request.add_header("Content-Type", Template::text(FORM));
            step.request.body = ImportedBody::File(file);
        } else if !self.parts.is_empty() {
            step.request.remove_header("Content-Type");
            step.request.body = ImportedBody::Multipart(self.parts);
        } else if has_body && !self.is_get {
            step.request.add_header("Content-Type", Template::text(FORM));
            builder::text_body(&mut step, data);
        }
        builder::take_basic_auth(&mut step);
        for url in urls.iter().skip(1) {
            let mut other = step.clone();
            other.notes.clear();
            builder::set_line(&mut other, &method, url, session);
            session.push(scenario, std::mem::take(&mut step));
            step = other;
        }
        session.push(scenario, step);
    }
}

/// URL with data as its query.
fn with_query(url: &Template, data: &Template) -> Template {
    let separator = if text::source(url).contains('?') { "&" } else { "?" };
    text::concat([url, &Template::text(separator), data])
}

/// `name=value` of `--data-urlencode`, encoded.
fn encoded(data: &Template) -> Template {
    let encode = |text: &Template| {
        text::map_fixed(text, |fixed| {
            let encoded: String = fixed
                .bytes()
                .map(|b| match b {
                    b if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) => char::from(b).to_string(),
                    b => format!("%{b:02X}"),
                })
                .collect();
            Template::text(encoded)
        })
    };
    match split_at(data, '=') {
        Some((name, value)) if name.is_empty() => encode(&value),
        Some((name, value)) => text::concat([&Template::text(format!("{name}=")), &encode(&value)]),
        None => encode(data),
    }
}

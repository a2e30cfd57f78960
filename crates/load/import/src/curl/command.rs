//! Options of curl's command lines.

use weir_hurl::{OptionCount, OptionName, OptionValue, Templated};

use super::data::DataPiece;
use super::form::{self, FormPart, FormSource};
use super::letters::long_name;
use super::marks::{self, MarkTable};
use super::options::{CurlFlag, long_flag};
use super::shell_command::ShellCommand;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;

/// Most flags of one letter in a word.
const MAX_LETTERS: usize = 64;

/// Options of one request so far.
#[derive(Debug, Default)]
pub(super) struct CurlRequest {
    pub(super) urls: Vec<String>,
    pub(super) method: Option<String>,
    /// Headers of `-H`; an empty value removes the header.
    pub(super) headers: Vec<(String, Option<String>)>,
    pub(super) cookies: Vec<String>,
    pub(super) user_agent: Option<String>,
    pub(super) referer: Option<String>,
    pub(super) bearer: Option<String>,
    pub(super) range: Option<String>,
    pub(super) data: Vec<DataPiece>,
    pub(super) parts: Vec<FormPart>,
    pub(super) query: Vec<DataPiece>,
    pub(super) user: Option<String>,
    pub(super) uploads: Vec<String>,
    pub(super) is_json: bool,
    pub(super) is_get: bool,
    pub(super) is_head: bool,
    pub(super) has_globs: bool,
    pub(super) step: ImportedStep,
}

/// Adds the steps of a command, whose words are those after `curl`.
pub(super) fn read(
    shell: &ShellCommand,
    marks: &MarkTable,
    session: &mut ImportSession,
    scenario: &mut ImportedScenario,
) {
    let mut request = CurlRequest::at(shell.line);
    let mut words = shell.words.iter();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        if only_urls || !word.starts_with('-') || word == "-" {
            request.urls.push(word.clone());
            continue;
        }
        if word == "--" {
            only_urls = true;
            continue;
        }
        for (name, attached) in flags(word) {
            let Some((flag, long, is_negated)) = long_flag(&name) else {
                request.omit(OmissionKind::Setting, &format!("the flag --{}", marks.shown(&name)), session);
                continue;
            };
            if flag == CurlFlag::Next {
                request.finish(shell, marks, session, scenario);
                request = CurlRequest::at(shell.line);
                continue;
            }
            if is_negated {
                request.negate(flag);
                continue;
            }
            let value = match flag.takes_value() {
                true => attached.or_else(|| words.next().cloned()),
                false => None,
            };
            request.take(flag, long, value.unwrap_or_default(), marks, session);
        }
    }
    request.finish(shell, marks, session, scenario);
}

/// Long names of the flags of a word, and a value that is attached to the last one: `-sXPOST`.
fn flags(word: &str) -> Vec<(String, Option<String>)> {
    if let Some(long) = word.strip_prefix("--") {
        return vec![(long.to_owned(), None)];
    }
    let mut found = Vec::new();
    for (at, letter) in word.char_indices().skip(1).take(MAX_LETTERS) {
        let Some(name) = long_name(letter) else {
            found.push((letter.to_string(), None));
            continue;
        };
        let rest = at + letter.len_utf8();
        if long_flag(name).is_some_and(|(flag, ..)| flag.takes_value()) {
            found.push((name.to_owned(), (rest < word.len()).then(|| word[rest..].to_owned())));
            break;
        }
        found.push((name.to_owned(), None));
    }
    found
}

impl CurlRequest {
    fn at(line: u32) -> Self {
        Self { step: ImportedStep { line, ..ImportedStep::default() }, has_globs: true, ..Self::default() }
    }

    /// Records an omission above the request.
    pub(super) fn omit(&mut self, kind: OmissionKind, what: &str, session: &mut ImportSession) {
        builder::omit(&mut self.step, kind, what, session);
    }

    fn negate(&mut self, flag: CurlFlag) {
        let name = match flag {
            CurlFlag::Get => return self.is_get = false,
            CurlFlag::Head => return self.is_head = false,
            CurlFlag::GlobOff => return self.has_globs = true,
            CurlFlag::Digest => OptionName::Digest,
            CurlFlag::Location => OptionName::Location,
            CurlFlag::LocationTrusted => OptionName::LocationTrusted,
            CurlFlag::Compressed => OptionName::Compressed,
            CurlFlag::PathAsIs => OptionName::PathAsIs,
            _ => return,
        };
        self.step.request.options.retain(|option| option.name != name);
    }

    fn take(&mut self, flag: CurlFlag, name: &str, value: String, marks: &MarkTable, session: &mut ImportSession) {
        let request = &mut self.step.request;
        match flag {
            CurlFlag::Method => self.method = Some(value),
            CurlFlag::Url => self.urls.push(value),
            CurlFlag::Header => self.take_header(&value, marks, session),
            CurlFlag::UserAgent => self.user_agent = Some(value),
            CurlFlag::Referer => self.referer = Some(value),
            CurlFlag::Bearer => self.bearer = Some(value),
            CurlFlag::Range => self.range = Some(value),
            CurlFlag::Cookie if value.contains('=') => self.cookies.push(value),
            CurlFlag::Cookie if value.is_empty() => {}
            CurlFlag::Cookie => {
                let what = format!("cookies of the file {}", marks.shown(&value));
                self.omit(OmissionKind::File, &what, session);
            }
            CurlFlag::User => self.user = Some(value),
            CurlFlag::Digest => request.set_flag(OptionName::Digest),
            CurlFlag::Data => self.data.push(DataPiece::plain(value, true, true)),
            CurlFlag::DataBinary => self.data.push(DataPiece::plain(value, true, false)),
            CurlFlag::Json => {
                self.is_json = true;
                self.data.push(DataPiece::plain(value, false, false));
            }
            CurlFlag::DataRaw => self.data.push(DataPiece::raw(value)),
            CurlFlag::DataUrlEncode => self.data.push(DataPiece::encoded(&value)),
            CurlFlag::Form => match form::parts(&value) {
                Ok(parts) => self.parts.extend(parts),
                Err(reason) => {
                    let what = format!("the part {} {reason}", marks.shown(&value));
                    self.omit(OmissionKind::Body, &what, session);
                }
            },
            CurlFlag::FormString => match value.split_once('=') {
                Some((name, text)) => self.parts.push(FormPart {
                    name: name.to_owned(),
                    source: FormSource::Text(text.to_owned()),
                    ..FormPart::default()
                }),
                None => {
                    let what = format!("the part {} without a '='", marks.shown(&value));
                    self.omit(OmissionKind::Body, &what, session);
                }
            },
            CurlFlag::UrlQuery => self.query.push(match value.strip_prefix('+') {
                Some(raw) => DataPiece::raw(raw.to_owned()),
                None => DataPiece::encoded(&value),
            }),
            CurlFlag::Get => self.is_get = true,
            CurlFlag::Head => self.is_head = true,
            CurlFlag::GlobOff => self.has_globs = false,
            CurlFlag::Location => request.set_flag(OptionName::Location),
            CurlFlag::LocationTrusted => request.set_flag(OptionName::LocationTrusted),
            CurlFlag::Compressed => request.set_flag(OptionName::Compressed),
            CurlFlag::PathAsIs => request.set_flag(OptionName::PathAsIs),
            CurlFlag::MaxTime | CurlFlag::RetryDelay => {
                let option = if flag == CurlFlag::MaxTime { OptionName::MaxTime } else { OptionName::RetryInterval };
                match value.parse::<f64>().ok().filter(|seconds| (0.001..=1e9).contains(seconds)) {
                    Some(seconds) => request.set_duration(option, (seconds * 1000.0) as u64),
                    None => self.omit_flag(name, &value, marks, session),
                }
            }
            CurlFlag::MaxRedirects | CurlFlag::Retry => {
                let option = if flag == CurlFlag::Retry { OptionName::Retry } else { OptionName::MaxRedirs };
                match value.parse::<u64>() {
                    Ok(count) => {
                        request.set_option(option, OptionValue::Count(Templated::Literal(OptionCount::Finite(count))));
                    }
                    Err(_) => self.omit_flag(name, &value, marks, session),
                }
            }
            CurlFlag::Upload => self.uploads.push(value),
            CurlFlag::Quiet | CurlFlag::QuietValue | CurlFlag::Next => {}
            CurlFlag::Unknown | CurlFlag::UnknownValue => self.omit_flag(name, &value, marks, session),
            CurlFlag::Connection | CurlFlag::ConnectionValue => {
                let value = marks.shown(&value);
                let gap = if value.is_empty() { "" } else { " " };
                let what = format!("the flag --{name}{gap}{value}, connections have flags of weir load");
                self.omit(OmissionKind::Setting, &what, session);
            }
        }
    }

    fn omit_flag(&mut self, name: &str, value: &str, marks: &MarkTable, session: &mut ImportSession) {
        let value = marks.shown(value);
        let gap = if value.is_empty() { "" } else { " " };
        self.omit(OmissionKind::Setting, &format!("the flag --{name}{gap}{value}"), session);
    }

    /// `Name: value`, `Name:` to remove it, `Name;` for an empty one, `@file` with one a line.
    fn take_header(&mut self, value: &str, marks: &MarkTable, session: &mut ImportSession) {
        if let Some(file) = value.strip_prefix('@') {
            let name = marks.shown(file);
            let Some(bytes) = session.read_file(&name) else {
                return self.omit(OmissionKind::Header, &format!("headers of the file {name}"), session);
            };
            let mut lines = String::new();
            marks::push_bytes(&mut lines, &bytes);
            for line in lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
                self.take_header(line.trim_start_matches('@'), marks, session);
            }
            return;
        }
        let named = match value.split_once(':') {
            Some((name, value)) => {
                let value = value.trim();
                Some((name, (!value.is_empty()).then(|| value.to_owned())))
            }
            None => value.trim_end().strip_suffix(';').map(|name| (name, Some(String::new()))),
        };
        match named {
            Some((name, value)) => self.headers.push((name.trim().to_owned(), value)),
            None => self.omit(OmissionKind::Header, &format!("the header {}", marks.shown(value)), session),
        }
    }
}

//! HTTP Archives: requests with their responses, as browsers and proxies save them.

use std::collections::{BTreeSet, HashMap, HashSet};

use base64::Engine;
use weir_hurl::{ExpectedResponse, ExpectedStatus, FieldTemplate, OptionName, Template};

use crate::builder::{self, percent_decoded};
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::har_body;
use crate::omission::OmissionKind;
use crate::recorded::{RecordedResponse, values};
use crate::request::{ImportedStep, field};
use crate::request_words::words;
use crate::session::ImportSession;
use crate::settings::ImportSettings;
use crate::static_file::is_static_file;
use crate::tree::{SourceNode, parse_json_to};
use weir_base::timestamp::Timestamp;

/// Shortest wait between two requests that a user makes; below it the page does.
const MIN_THINK_MS: i64 = 500;

/// Longest wait that is kept.
const MAX_THINK_MS: i64 = 60_000;

/// Depth of an entry: in a list in the object of the log in the object of the file. Entries are read one at a time.
const ENTRY_DEPTH: usize = 3;

/// Longest recorded body that is looked into.
const MAX_RECORDED_BYTES: usize = 4 << 20;

/// Reads an archive.
pub(crate) fn read(
    text: &str,
    settings: &ImportSettings,
    session: &mut ImportSession,
) -> Result<Vec<ImportedScenario>, Mismatch> {
    let root = parse_json_to(text, ENTRY_DEPTH)?;
    let entries = root.get("log").and_then(|log| log.get("entries"));
    let Some(entries) = entries else {
        return Err(Mismatch::new(root.line, "\"log\" with \"entries\"", root.noun()));
    };
    let mut entries: Vec<(Option<i64>, &SourceNode<'_>)> =
        entries.items().iter().map(|entry| (started_ms(&entry.read()), entry)).collect();
    // Some tools write entries in the order of their ends.
    if entries.iter().all(|(start, _)| start.is_some()) {
        entries.sort_by_key(|(start, _)| *start);
    }
    let pages = root.get("log").map(|log| log.items_of("pages")).unwrap_or_default();
    let pages: Vec<SourceNode<'_>> = pages.iter().map(SourceNode::read).collect();
    let title = |page: &SourceNode<'_>| Some((page.text_of("id")?, page.text_of("title").unwrap_or_default()));
    let mut reader = HarReader {
        settings,
        set_cookies: BTreeSet::new(),
        last_end_ms: None,
        // With one page there is nothing to tell apart.
        pages: if pages.len() > 1 { pages.iter().filter_map(title).collect() } else { HashMap::new() },
        page: String::new(),
    };
    let mut scenario = ImportedScenario::default();
    let mut recorded = Vec::new();
    for (start, entry) in entries {
        if let Some(step) = reader.entry(&entry.read(), start, session) {
            recorded.push(entry);
            session.push(&mut scenario, step);
        }
    }
    // Bodies make up most of a recording: of each only what requests have, too, is kept.
    let known: HashSet<String> = match settings.correlate {
        true => scenario.steps.iter().flat_map(|step| words(&step.request)).collect(),
        false => HashSet::new(),
    };
    let is_known =
        |value: &str| known.contains(value) || percent_decoded(value).is_some_and(|decoded| known.contains(&decoded));
    if !known.is_empty() {
        for (step, entry) in scenario.steps.iter_mut().zip(recorded) {
            if let Some(response) = entry.read().get("response") {
                step.recorded = values(&recorded_response(response), &is_known);
            }
        }
    }
    session.end(&mut scenario);
    Ok(vec![scenario])
}

struct HarReader<'a> {
    settings: &'a ImportSettings,
    /// Names of cookies that responses so far have set.
    set_cookies: BTreeSet<String>,
    /// End of the latest response.
    last_end_ms: Option<i64>,
    /// Titles of pages by their ID.
    pages: HashMap<String, String>,
    /// ID of the page of the latest request.
    page: String,
}

impl HarReader<'_> {
    fn entry(
        &mut self,
        entry: &SourceNode<'_>,
        start_ms: Option<i64>,
        session: &mut ImportSession,
    ) -> Option<ImportedStep> {
        let Some(request) = entry.get("request").filter(|request| request.is_map()) else {
            session.omit(entry.line, OmissionKind::Request, "an entry without a request");
            return None;
        };
        let method = request.text_of("method").unwrap_or_else(|| "GET".to_owned());
        let url = request.text_of("url").unwrap_or_default();
        let response = entry.get("response");
        self.note_page(entry, session);
        // Chromium notes what the page wanted.
        let wanted = entry.text_of("_resourceType");
        let content = response.and_then(|response| response.get("content"));
        let media_type = content.and_then(|content| content.text_of("mimeType")).unwrap_or_default();
        if !self.settings.all && is_static_file(&method, &url, &media_type, wanted.as_deref()) {
            session.omit(request.line, OmissionKind::StaticFile, format!("{method} {url}"));
            return None;
        }
        if url.starts_with("data:") || url.starts_with("blob:") {
            return None;
        }
        if method.eq_ignore_ascii_case("connect") {
            session.omit(request.line, OmissionKind::Request, format!("CONNECT {url}, which is for a proxy"));
            return None;
        }
        let mut step = ImportedStep { line: request.line, ..ImportedStep::default() };
        builder::set_line(&mut step, &method, &Template::text(url), session);
        self.headers(request, &mut step, session);
        self.listed_cookies(request, &mut step);
        har_body::set(request, &mut step, session);
        builder::take_basic_auth(&mut step);
        // weir's recorder notes why a request cannot be played.
        if let Some(reason) = entry.text_of("_leftOut").filter(|_| !step.is_disabled) {
            step.is_disabled = true;
            let what = format!("{}: {reason}", step.request.line());
            builder::omit(&mut step, OmissionKind::Request, &what, session);
        }
        if let Some(response) = response {
            self.response(response, &mut step);
        }
        self.think(entry, start_ms, &mut step);
        Some(step)
    }

    /// Writes a comment where another page begins.
    fn note_page(&mut self, entry: &SourceNode<'_>, session: &mut ImportSession) {
        let Some(page) = entry.text_of("pageref").filter(|page| *page != self.page) else { return };
        if let Some(title) = self.pages.get(&page) {
            session.note(format!("page: {title}"));
            self.page = page;
        }
    }

    fn headers(&self, request: &SourceNode<'_>, step: &mut ImportedStep, session: &mut ImportSession) {
        for header in request.items_of("headers") {
            let name = header.text_of("name").unwrap_or_default();
            let value = header.text_of("value").unwrap_or_default();
            if name.eq_ignore_ascii_case("cookie") {
                step.request.cookies.extend(self.cookies(&value));
            } else if !name.contains(' ') && !is_of_browser(&name) {
                // Some recorders take the request line for a header.
                builder::add_header(step, &name, &Template::text(value), session);
            }
        }
    }

    /// Cookies of a request whose headers were recorded without them.
    fn listed_cookies(&self, request: &SourceNode<'_>, step: &mut ImportedStep) {
        let headers = request.items_of("headers").iter();
        let mut names = headers.filter_map(|header| header.text_of("name"));
        if names.any(|name| name.eq_ignore_ascii_case("cookie")) {
            return;
        }
        let cookies = request.items_of("cookies").iter();
        let pairs = cookies.filter_map(|cookie| Some((cookie.text_of("name")?, cookie.text_of("value")?)));
        let own = pairs.filter(|(name, _)| !name.is_empty() && !self.set_cookies.contains(name));
        step.request.cookies.extend(own.map(|(name, value)| field(Template::text(name), Template::text(value))));
    }

    /// Cookies that no response has set: a user of a load gets the others as a browser does.
    fn cookies(&self, header: &str) -> Vec<FieldTemplate> {
        let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let own = pairs.filter(|(name, _)| !name.is_empty() && !self.set_cookies.contains(*name));
        own.map(|(name, value)| field(Template::text(name), Template::text(value))).collect()
    }

    fn response(&mut self, response: &SourceNode<'_>, step: &mut ImportedStep) {
        let status = response.get("status").and_then(SourceNode::number).unwrap_or(0.0);
        let status = if (100.0..=599.0).contains(&status) { status as u16 } else { 0 };
        for header in response.items_of("headers") {
            let is_cookie = header.text_of("name").is_some_and(|name| name.eq_ignore_ascii_case("set-cookie"));
            // Browsers write several in one value, a line each.
            let value = header.text_of("value").filter(|_| is_cookie).unwrap_or_default();
            let names = value.lines().filter_map(|line| line.split_once('='));
            self.set_cookies.extend(names.map(|(name, _)| name.trim().to_owned()));
        }
        // What was not modified is there in a load without a cache.
        let expected = match status {
            0 => None,
            304 => Some(200),
            status => Some(status),
        };
        if status == 304 {
            for name in ["If-None-Match", "If-Modified-Since"] {
                step.request.remove_header(name);
            }
        }
        step.response = expected
            .map(|status| ExpectedResponse { status: ExpectedStatus::Code(status), ..ExpectedResponse::default() });
    }

    /// Waits as the user has waited since the last response.
    fn think(&mut self, entry: &SourceNode<'_>, start_ms: Option<i64>, step: &mut ImportedStep) {
        let Some(start) = start_ms else { return };
        if let Some(wait) = self.last_end_ms.map(|end| start - end).filter(|wait| *wait >= MIN_THINK_MS) {
            let wait = wait.min(MAX_THINK_MS) / 100 * 100;
            step.request.set_duration(OptionName::Delay, u64::try_from(wait).unwrap_or_default());
        }
        let time = entry.get("time").and_then(SourceNode::number).unwrap_or(0.0).clamp(0.0, 1e9);
        let end = start + time as i64;
        self.last_end_ms = Some(self.last_end_ms.map_or(end, |last| last.max(end)));
    }
}

/// Whether a header says what a browser is or how it came to send a request, and nothing that a service needs.
fn is_of_browser(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sec-ch-", "sec-fetch-"].iter().any(|start| name.starts_with(start))
        || ["priority", "purpose", "sec-gpc", "sec-purpose", "upgrade-insecure-requests"].contains(&name.as_str())
}

/// Headers and body of a recorded response.
fn recorded_response(response: &SourceNode<'_>) -> RecordedResponse {
    let pair = |header: &SourceNode<'_>| Some((header.text_of("name")?, header.text_of("value")?));
    let headers = response.items_of("headers").iter().filter_map(pair);
    let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("set-cookie"));
    let content = response.get("content");
    let media_type = content.and_then(|content| content.text_of("mimeType")).unwrap_or_default();
    RecordedResponse {
        headers: headers.collect(),
        media_type: media_type.to_ascii_lowercase(),
        body: content.map(content_text).unwrap_or_default(),
    }
}

/// Text of a recorded body; empty if it is not text, or too long to be looked into.
fn content_text(content: &SourceNode<'_>) -> String {
    let Some(text) = content.get("text").and_then(SourceNode::text) else { return String::new() };
    if text.len() > MAX_RECORDED_BYTES {
        return String::new();
    }
    if content.text_of("encoding").as_deref() != Some("base64") {
        return text.into_owned();
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.as_bytes()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Start of an entry, in milliseconds since 1970: `2026-01-02T03:04:05.678Z`, or with an offset.
fn started_ms(entry: &SourceNode<'_>) -> Option<i64> {
    let time = Timestamp::parse(&entry.text_of("startedDateTime")?)?;
    i64::try_from(time.unix_ns / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse_json;

    #[test]
    fn times_have_zones_and_fractions() {
        let started = |text: &str| {
            let json = format!("{{\"startedDateTime\": \"{text}\"}}");
            started_ms(&parse_json(&json).unwrap())
        };
        assert_eq!(started("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(started("2024-02-29T12:30:15.250Z"), Some(1_709_209_815_250));
        assert_eq!(started("2024-02-29T13:30:15.25+01:00"), Some(1_709_209_815_250));
        assert_eq!(started("2024-02-29T07:30:15.250123-0500"), Some(1_709_209_815_250));
        assert_eq!([started("yesterday"), started("2024-02-31T12:30:15Z")], [None; 2]);
    }
}

//! Parser of jobs.
//!
//! A line is an object: `{"id": "a1", "url": "http://...", "method": "POST", "headers": {"x-a": "b"}, "body": {...},
//! "ttl": "30s", "weight": 120, "priority": 1, "pinned_key": "alice"}`. All fields are optional where [`JobDefaults`]
//! has a value. A body that is not a string is sent as JSON. Lines of OpenAI's batch files (`custom_id`, `method`,
//! `url`, `body`) are of this form.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::api_key::fingerprint;
use super::job::{Job, JobRequest, UnixMs};
use super::template::unknown_field;
use weir_decide::Nanos;
use weir_decide::base::units;
use weir_http::target::Target;

/// Defaults of all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobDefaults {
    /// URL; base of URLs that are paths.
    pub url: Option<String>,
    /// Method; GET, or POST with a body.
    pub method: Option<String>,
    /// Headers; a job's own of the same name replace them.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<Vec<u8>>,
    /// Time to live, in milliseconds.
    pub ttl_ms: Option<u64>,
}

/// Fields of one job; [`JobDefaults`] has the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOverrides {
    /// Job ID.
    pub id: Option<String>,
    /// URL, or a path at the host of the default URL.
    pub url: Option<String>,
    /// Method, in any case.
    pub method: Option<String>,
    /// Headers; they replace the default ones of the same name.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<Vec<u8>>,
    /// Content type of the body, unless a header has one.
    pub content_type: Option<Cow<'static, str>>,
    /// Time to live, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Weight; 1 by default.
    pub weight: Option<u32>,
    /// Priority, higher is sent first; 0 by default.
    pub priority: Option<i32>,
    /// Name of the only key that may send it.
    pub key_hint: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobLine<'a> {
    id: Option<LineId>,
    custom_id: Option<LineId>,
    method: Option<String>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    ttl: Option<TtlValue>,
    weight: Option<u32>,
    priority: Option<i32>,
    pinned_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LineId {
    Text(String),
    Number(i64),
}

impl LineId {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TtlValue {
    Text(String),
    Seconds(f64),
}

impl JobDefaults {
    /// Validates the templates and the URL.
    ///
    /// # Errors
    /// One line of text.
    pub fn check(&self) -> Result<(), String> {
        let texts = self.url.iter().map(|url| ("url", url.as_str()));
        let headers = self.headers.iter().map(|(_, value)| ("header", value.as_str()));
        let body = self.body.as_deref().and_then(|body| std::str::from_utf8(body).ok()).map(|body| ("body", body));
        for (place, text) in texts.chain(headers).chain(body) {
            if let Some(name) = unknown_field(text) {
                return Err(format!("--{place}: unknown field '{{{name}}}'; choose {{key}}, {{nonce}} or {{id}}"));
            }
        }
        if let Some(url) = &self.url {
            Target::parse(url).map_err(|error| format!("--url: {error}"))?;
        }
        Ok(())
    }

    /// Parses a line; None if it is empty. A job without an ID gets one from the line's number and a hash of the line,
    /// so that it is a duplicate in a second run.
    ///
    /// # Errors
    /// Reason, in prose.
    pub fn parse_line(&self, number: u64, text: &str, now: UnixMs) -> Result<Option<Job>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        // Serde would also accept an array of the fields' values.
        if !text.starts_with('{') {
            return Err("invalid job: not an object; write e.g. {\"id\": \"a1\"}".into());
        }
        let line: JobLine<'_> = serde_json::from_str(text).map_err(|error| json_error_text(&error))?;
        let id = line.id.or(line.custom_id).map(LineId::text);
        let id = id.unwrap_or_else(|| format!("line-{number}-{:016x}", fingerprint(text.as_bytes())));
        let (body, is_json) = match line.body.map(parse_body).transpose()?.flatten() {
            Some((text, is_json)) => (Some(text.into_owned().into_bytes()), is_json),
            None => (None, false),
        };
        let own = JobOverrides {
            id: Some(id),
            url: line.url,
            method: line.method,
            headers: line.headers.unwrap_or_default().into_iter().collect(),
            body,
            content_type: is_json.then_some(Cow::Borrowed("application/json")),
            ttl_ms: line.ttl.map(ttl_ms).transpose()?,
            weight: line.weight,
            priority: line.priority,
            key_hint: line.pinned_key,
        };
        self.build(own, now).map(Some)
    }

    /// Builds a job from its fields and the defaults.
    ///
    /// # Errors
    /// Reason, in prose.
    pub fn build(&self, own: JobOverrides, now: UnixMs) -> Result<Job, String> {
        if own.id.as_ref().is_some_and(String::is_empty) {
            return Err("empty id".into());
        }
        if own.key_hint.as_ref().is_some_and(String::is_empty) {
            return Err("empty pinned_key; leave it out for any key".into());
        }
        let weight = own.weight.unwrap_or(1);
        if weight == 0 {
            return Err("invalid weight 0; it is at least 1".into());
        }
        let mut headers = own.headers;
        for (name, value) in &self.headers {
            if !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                headers.push((name.clone(), value.clone()));
            }
        }
        if let Some(kind) = own.content_type
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("content-type".into(), kind.into_owned()));
        }
        let body = own.body.or_else(|| self.body.clone()).unwrap_or_default();
        let method = own.method.map(|method| method.to_ascii_uppercase()).or_else(|| self.method.clone());
        let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.into());
        let url = self.resolve_url(own.url)?;
        for text in [&url].into_iter().chain(headers.iter().map(|(_, value)| value)) {
            if let Some(name) = unknown_field(text) {
                return Err(format!("unknown field '{{{name}}}'; choose {{key}}, {{nonce}} or {{id}}"));
            }
        }
        Ok(Job {
            id: own.id,
            request: JobRequest { method, url, headers, body },
            created_at: now,
            expires_at: own.ttl_ms.or(self.ttl_ms).map(|ms| now.plus_ms(ms)),
            priority: own.priority.unwrap_or(0),
            weight,
            key_hint: own.key_hint,
            idempotency_key: None,
        })
    }

    /// URL of a job.
    fn resolve_url(&self, own: Option<String>) -> Result<String, String> {
        let url = match (own, &self.url) {
            (None, None) => return Err("no url, and there is no --url".into()),
            // The defaults are validated already.
            (None, Some(url)) => return Ok(url.clone()),
            (Some(path), Some(base)) if path.starts_with('/') => {
                let rest = base.find("://").map_or(0, |at| at + 3);
                let end = base[rest..].find(['/', '?', '#']).map_or(base.len(), |at| rest + at);
                format!("{}{path}", &base[..end])
            }
            (Some(url), _) if url.starts_with('/') => return Err(format!("'{url}' is a path, and there is no --url")),
            (Some(url), _) => url,
        };
        Target::parse(&url).map_err(|error| error.to_string())?;
        Ok(url)
    }
}

/// Body as text, and whether it is JSON.
fn parse_body(raw: &RawValue) -> Result<Option<(Cow<'_, str>, bool)>, String> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'"') => Some((Cow::Owned(serde_json::from_str(text).map_err(|error| json_error_text(&error))?), false)),
        Some(b'n') => None,
        _ => Some((Cow::Borrowed(text), true)),
    })
}

fn ttl_ms(length: TtlValue) -> Result<u64, String> {
    let length = match length {
        TtlValue::Text(text) => Nanos::from(units::time(&text)?),
        TtlValue::Seconds(s) if s.is_finite() && (0.0..=3e9).contains(&s) => Nanos::from_secs_f64(s),
        TtlValue::Seconds(s) => return Err(format!("invalid ttl {s}: it is between 0 and 3e9 seconds")),
    };
    Ok(length.as_millis())
}

/// Message of the JSON parser without the line number, which is always 1.
fn json_error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line 1 column ") {
        Some((what, column)) if column != "0" => format!("{what} at column {column}"),
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_000_000);

    fn form() -> JobDefaults {
        JobDefaults {
            url: Some("http://h:1/a?k={key}".into()),
            headers: vec![("x-a".into(), "1".into())],
            ttl_ms: Some(1000),
            ..JobDefaults::default()
        }
    }

    fn job(text: &str) -> Job {
        form().parse_line(3, text, NOW).unwrap().unwrap()
    }

    #[test]
    fn what_a_line_leaves_out_is_the_forms() {
        let plain = job("{}");
        assert_eq!((plain.request.method.as_str(), plain.request.url.as_str()), ("GET", "http://h:1/a?k={key}"));
        assert_eq!((plain.expires_at, plain.weight), (Some(UnixMs(1_001_000)), 1));
        assert_eq!(plain.id, job(" {} ").id);
        assert_ne!(plain.id, form().parse_line(4, "{}", NOW).unwrap().unwrap().id);
        assert_eq!(form().parse_line(1, "  ", NOW), Ok(None));
    }

    #[test]
    fn a_line_of_a_batch_file_is_a_job() {
        let line =
            r#"{"custom_id": "request-1", "method": "POST", "url": "/v1/chat", "body": {"b": [1, 2.50], "a": "{x}"}}"#;
        let batch = job(line);
        assert_eq!(batch.id.as_deref(), Some("request-1"));
        assert_eq!(batch.request.url, "http://h:1/v1/chat");
        assert_eq!(batch.request.body, br#"{"b": [1, 2.50], "a": "{x}"}"#, "as it was written");
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        assert!(batch.request.headers.contains(&kind));
    }

    #[test]
    fn a_lines_own_words_take_precedence() {
        let own = job(
            r#"{"id": 7, "headers": {"X-A": "2"}, "body": "hey", "ttl": "2s", "weight": 5, "priority": -1, "url": "http://o/", "pinned_key": "alice"}"#,
        );
        assert_eq!((own.key_hint.as_deref(), job("{}").key_hint), (Some("alice"), None));
        assert_eq!(own.id.as_deref(), Some("7"));
        assert_eq!(own.request.headers, [("X-A".to_owned(), "2".to_owned())]);
        assert_eq!((own.request.method.as_str(), own.request.body.as_slice()), ("POST", b"hey".as_slice()));
        assert_eq!((own.expires_at, own.weight, own.priority), (Some(UnixMs(1_002_000)), 5, -1));
        assert_eq!(job(r#"{"ttl": 0.5}"#).expires_at, Some(UnixMs(1_000_500)));
    }

    #[test]
    fn a_line_that_is_wrong_says_why() {
        let why = |text| form().parse_line(1, text, NOW).unwrap_err();
        assert!(why("{\"id\": ").contains("column"), "{}", why("{\"id\": "));
        assert!(why(r#"{"methd": "GET"}"#).contains("methd"));
        assert!(why(r#"{"url": "http://h/{user}"}"#).contains("'{user}'"));
        assert!(why(r#"{"url": "ftp://h"}"#).contains("ftp"));
        assert!(why(r#"{"ttl": "soon"}"#).contains("soon"));
        assert!(why(r#"{"weight": 0}"#).contains("at least 1"));
        assert!(why(r#"{"pinned_key": ""}"#).contains("empty pinned_key"));
        assert!(why(r#"["a",null,null,null,null,null,null,null,null,null]"#).contains("object"));
        assert!(why("[]").contains("invalid"), "{}", why("[]"));
        let bare = JobDefaults::default();
        assert!(bare.parse_line(1, "{}", NOW).unwrap_err().contains("--url"));
        assert!(bare.parse_line(1, r#"{"url": "/a"}"#, NOW).unwrap_err().contains("is a path"));
    }

    #[test]
    fn a_form_with_an_unknown_field_is_refused() {
        let wrong = JobDefaults { url: Some("http://h/{token}".into()), ..JobDefaults::default() };
        assert!(wrong.check().unwrap_err().starts_with("--url: unknown field '{token}'"));
        assert_eq!(form().check(), Ok(()));
    }
}

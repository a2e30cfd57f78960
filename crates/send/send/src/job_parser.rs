//! Parser of jobs.
//!
//! A line is an object: `{"id": "a1", "url": "http://...", "method": "POST", "headers": {"x-a": "b"}, "body": {...},
//! "ttl": "30s", "weight": 120, "priority": 1, "pinned_key": "alice"}`. All fields are optional where [`JobDefaults`]
//! has a value. A body that is not a string is sent as JSON. Lines of OpenAI's batch files (`custom_id`, `method`,
//! `url`, `body`) are of this form.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::api_key::fingerprint;
use super::job::{Job, UnixMs};
use super::job_defaults::{JobDefaults, JobOverrides};
use weir_base::Nanos;
use weir_base::units;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    custom_id: Option<&'a RawValue>,
    method: Option<String>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    ttl: Option<&'a RawValue>,
    #[serde(borrow)]
    weight: Option<&'a RawValue>,
    #[serde(borrow)]
    priority: Option<&'a RawValue>,
    pinned_key: Option<String>,
}

impl JobDefaults {
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
        let id = line.id.or(line.custom_id).map(parse_id).transpose()?;
        let id = id.unwrap_or_else(|| format!("line-{number}-{:016x}", fingerprint(text.as_bytes())));
        let (body, is_json) = match line.body.map(parse_body).transpose()?.flatten() {
            Some((text, is_json)) => (Some(text.into_owned().into_bytes()), is_json),
            None => (None, false),
        };
        let overrides = JobOverrides {
            id: Some(id),
            url: line.url,
            method: line.method,
            headers: line.headers.unwrap_or_default().into_iter().collect(),
            body,
            content_type: is_json.then_some(Cow::Borrowed("application/json")),
            ttl_ms: line.ttl.map(parse_ttl_ms).transpose()?,
            weight: line.weight.map(|raw| parse_number("weight", raw, "1 to 4294967295")).transpose()?,
            priority: line
                .priority
                .map(|raw| parse_number("priority", raw, "-2147483648 to 2147483647"))
                .transpose()?,
            key_hint: line.pinned_key,
        };
        self.build(overrides, now).map(Some)
    }
}

/// Job ID: text, or a whole number.
fn parse_id(raw: &RawValue) -> Result<String, String> {
    let text = raw.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(|error| json_error_text(&error));
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(format!("invalid id {}; write text or a whole number", shortened(text)))
}

fn parse_number<T: FromStr>(field: &str, raw: &RawValue, range: &str) -> Result<T, String> {
    let text = raw.get();
    text.parse().map_err(|_| format!("invalid {field} {}; write a whole number from {range}", shortened(text)))
}

/// Beginning of a value, for a message.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 32;
    let mut begin: String = text.chars().take(MAX_CHARS).collect();
    if begin.len() < text.len() {
        begin.push_str("...");
    }
    begin.escape_debug().to_string().replace("\\\"", "\"")
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

fn parse_ttl_ms(raw: &RawValue) -> Result<u64, String> {
    let text = raw.get();
    let length = if text.starts_with('"') {
        let text: String = serde_json::from_str(text).map_err(|error| json_error_text(&error))?;
        Nanos::from(units::time(&text)?)
    } else {
        let s = text.parse().ok().filter(|s: &f64| s.is_finite() && (0.0..=3e9).contains(s));
        let wrong = || format!("invalid ttl {}; write seconds from 0 to 3e9, or e.g. \"30s\"", shortened(text));
        Nanos::from_secs_f64(s.ok_or_else(wrong)?)
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
    use crate::job_defaults::tests::{NOW, form};

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
        let trusted = JobDefaults { url_fields: true, ..form() };
        let unknown = trusted.parse_line(1, r#"{"url": "http://h/{user}"}"#, NOW).unwrap_err();
        assert!(unknown.contains("'{user}'"), "{unknown}");
        assert!(why(r#"{"url": "ftp://h"}"#).contains("ftp"));
        assert!(why(r#"{"ttl": "soon"}"#).contains("soon"));
        assert!(why(r#"{"weight": 0}"#).contains("at least 1"));
        for (line, reason) in [
            (r#"{"weight": -1}"#, "invalid weight -1; write a whole number from 1 to 4294967295"),
            (r#"{"priority": "high"}"#, "invalid priority \"high\"; write a whole number from"),
            (r#"{"id": 1.5}"#, "invalid id 1.5; write text or a whole number"),
            (r#"{"custom_id": true}"#, "invalid id true; write text or a whole number"),
            (r#"{"id": [1]}"#, "invalid id [1]; write text"),
            (r#"{"ttl": true}"#, "invalid ttl true; write seconds"),
            (r#"{"ttl": -1}"#, "invalid ttl -1; write seconds"),
        ] {
            assert!(why(line).starts_with(reason), "{line}: {}", why(line));
        }
        assert!(why(r#"{"pinned_key": ""}"#).contains("empty pinned_key"));
        assert!(why(r#"["a",null,null,null,null,null,null,null,null,null]"#).contains("object"));
        assert!(why("[]").contains("invalid"), "{}", why("[]"));
        let bare = JobDefaults::default();
        assert!(bare.parse_line(1, "{}", NOW).unwrap_err().contains("--url"));
        assert!(bare.parse_line(1, r#"{"url": "/a"}"#, NOW).unwrap_err().contains("is a path"));
    }
}

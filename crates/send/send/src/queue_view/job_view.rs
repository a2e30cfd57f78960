//! Output forms of a job: a row, lines or a JSON object, without secrets.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::template::has_field;
use crate::{JobDetail, JobEntry, UnixMs};
use weir_base::terminal_text::single_line;
use weir_net::target::Target;
use weir_request::secret_mask::without_secrets;
use weir_request::secret_names::is_secret_name;

/// Job as one row.
pub fn job_row(entry: &JobEntry, now: UnixMs) -> String {
    let JobEntry { number, job, status } = entry;
    let id = job.id.as_deref().unwrap_or("-");
    let since = ago(status.changed_at, now);
    let (method, url) = (&job.request.method, url(&job.request.url));
    let row = format!(
        "{number:>8}  {:<13}  {:>8}  {since:<10}  {id:<20}  {method} {url}  {}",
        status.state, status.attempts, status.reason
    );
    single_line(&row)
}

/// Heading of the rows.
pub const JOB_HEADING: &str = "  NUMBER  STATE          ATTEMPTS  SINCE       ID                    REQUEST, REASON";

/// Job as a JSON object.
pub fn job_json(entry: &JobEntry) -> Map<String, Value> {
    let JobEntry { number, job, status } = entry;
    let last = status.last_attempt.as_ref();
    let value = json!({
        "number": number,
        "id": job.id,
        "state": status.state.name(),
        "reason": status.reason,
        "changed_ms": status.changed_at.0,
        "method": job.request.method,
        "url": url(&job.request.url),
        "attempts": status.attempts,
        "status": last.and_then(|last| last.status),
        "last_key": last.and_then(|last| last.key.as_ref()),
        "sent_ms": last.map(|last| last.sent_at.0),
        "retry_at_ms": status.retry_at.map(|at| at.0),
        "maybe_sent": status.maybe_sent,
        "created_ms": job.created_at.0,
        "expires_ms": job.expires_at.map(|at| at.0),
        "priority": job.priority,
        "weight": job.weight,
        "pinned_key": job.key_hint,
        "bytes": job.bytes(),
    });
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

/// Job with headers, body, response and history, as a JSON object.
pub fn detail_json(detail: &JobDetail) -> Map<String, Value> {
    let mut fields = job_json(&detail.entry);
    let request = &detail.entry.job.request;
    fields.insert("headers".into(), headers(&request.headers, &request.templates.headers));
    body(&mut fields, &request.body);
    if let Some(response) = &detail.response {
        let mut object = Map::new();
        object.insert("headers".into(), headers(&response.headers, &[]));
        body(&mut object, &response.body);
        fields.insert("response".into(), object.into());
    }
    let events = detail.history.iter().map(|event| {
        let sent = event.attempt.as_ref();
        json!({
            "at_ms": event.at.0,
            "state": event.state.name(),
            "reason": event.reason,
            "last_key": sent.and_then(|sent| sent.key.as_ref()),
            "sent_ms": sent.map(|sent| sent.sent_at.0),
            "status": sent.and_then(|sent| sent.status),
        })
    });
    fields.insert("history".into(), events.collect());
    fields
}

/// Job with headers, body, response and history, as lines of text.
pub fn detail_text(detail: &JobDetail, now: UnixMs) -> String {
    let JobEntry { number, job, status } = &detail.entry;
    let mut text = String::new();
    // Writing to memory does not fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12}{}", single_line(&value));
    };
    line("number", number.to_string());
    line("id", job.id.clone().unwrap_or_else(|| "-".into()));
    line("state", format!("{}, since {}: {}", status.state, ago(status.changed_at, now), status.reason));
    line("request", format!("{} {}", job.request.method, url(&job.request.url)));
    for (index, (name, value)) in job.request.headers.iter().enumerate() {
        let is_template = job.request.templates.headers.contains(&index);
        line("header", format!("{name}: {}", header(name, value, is_template)));
    }
    if !job.request.body.is_empty() {
        line("body", String::from_utf8_lossy(&job.request.body).into_owned());
    }
    let (weight, priority) = (job.weight, job.priority);
    let only = job.key_hint.as_ref().map_or_else(String::new, |key| format!(", pinned to key {key}"));
    line("terms", format!("weight {weight}, priority {priority}{only}"));
    line("created", date(job.created_at));
    if let Some(at) = job.expires_at {
        line("expires", date(at));
    }
    let maybe = if status.maybe_sent { ", maybe one more before a crash" } else { "" };
    line("attempts", format!("{}{maybe}", status.attempts));
    if let Some(last) = &status.last_attempt {
        let key = last.key.as_deref().unwrap_or("-");
        let code = last.status.map_or_else(|| "none".into(), |code| code.to_string());
        line("sent", format!("{}, key {key}, status {code}", date(last.sent_at)));
    }
    if let Some(at) = status.retry_at {
        line("retry at", date(at));
    }
    if let Some(response) = &detail.response {
        for (name, value) in &response.headers {
            line("response", format!("{name}: {}", header(name, value, false)));
        }
        line("response", String::from_utf8_lossy(&response.body).into_owned());
    }
    for event in &detail.history {
        line("history", format!("{}  {:<13}  {}", date(event.at), event.state, event.reason));
    }
    text
}

/// URL without its password, and without values of parameters that have names of secrets.
fn url(url: &str) -> String {
    match Target::parse(url) {
        Ok(target) if target.userinfo.is_some() => without_secrets(&target.url),
        _ => without_secrets(url),
    }
}

/// Value of a header, `***` if it may be a secret. A value with `{key}` is a template, not a secret.
fn header<'a>(name: &str, value: &'a str, is_template: bool) -> &'a str {
    if is_secret_name(name) && !(is_template && has_field(value, "key")) { "***" } else { value }
}

fn headers(headers: &[(String, String)], templates: &[usize]) -> Value {
    let line = |(index, (name, value)): (usize, &(String, String))| {
        json!([name, header(name, value, templates.contains(&index))])
    };
    headers.iter().enumerate().map(line).collect()
}

fn body(into: &mut Map<String, Value>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => into.insert("body".into(), text.into()),
        Err(_) => into.insert("body_base64".into(), BASE64.encode(bytes).into()),
    };
}

/// Age in prose, e.g. `4 s ago`.
pub(super) fn ago(at: UnixMs, now: UnixMs) -> String {
    let s = u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0) / 1000;
    match s {
        0..120 => format!("{s} s ago"),
        120..7_200 => format!("{} min ago", s / 60),
        7_200..172_800 => format!("{} h ago", s / 3_600),
        _ => format!("{} d ago", s / 86_400),
    }
}

fn date(at: UnixMs) -> String {
    let since = Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    // httpdate panics after the year 9999.
    let latest = Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(UNIX_EPOCH + since.min(latest))
}

/// Size in prose: `12 B`, `3.4 KiB`, `5.6 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let bytes_f = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes_f / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes_f / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes_f / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, JobRequest, JobStatus, State, TemplateParts};

    fn entry(url: &str, header: (&str, &str)) -> JobEntry {
        let headers = vec![(header.0.to_owned(), header.1.to_owned())];
        let mut templates = TemplateParts::default();
        templates.add_header(0, header.1);
        let request = JobRequest { method: "GET".into(), url: url.into(), headers, body: vec![0xff], templates };
        let status = JobStatus {
            state: State::Retrying,
            changed_at: UnixMs(1_000),
            reason: "status 503\u{1b}[2J".into(),
            attempts: 1,
            maybe_sent: false,
            retry_at: None,
            last_attempt: None,
        };
        JobEntry { number: 7, job: Job { request, ..Job::default() }, status }
    }

    #[test]
    fn output_has_neither_secrets_nor_control_characters() {
        let secret = entry("http://me:hunter2@h/a?token=hunter2", ("Authorization", "Bearer hunter2"));
        let detail = JobDetail { entry: secret, response: None, history: Vec::new() };
        let json = Value::from(detail_json(&detail)).to_string();
        let text = detail_text(&detail, UnixMs(5_000)) + &job_row(&detail.entry, UnixMs(5_000));
        assert!(!json.contains("hunter2") && !text.contains("hunter2"), "{json}\n{text}");
        assert!(!text.contains('\u{1b}') && text.contains("4 s ago"), "{text}");
        assert!(json.contains("\"body_base64\":\"/w==\""), "{json}");
        let template = entry("http://h/a?k={key}", ("Authorization", "Bearer {key}"));
        let detail = JobDetail { entry: template, response: None, history: Vec::new() };
        assert!(detail_text(&detail, UnixMs(0)).contains("Bearer {key}"));
    }

    #[test]
    fn ages_and_sizes_have_a_suitable_unit() {
        let age = |s: i64| ago(UnixMs(0), UnixMs(s * 1000));
        assert_eq!([age(-5), age(119), age(120)], ["0 s ago", "119 s ago", "2 min ago"]);
        assert_eq!([age(7_200), age(200_000)], ["2 h ago", "2 d ago"]);
        assert_eq!([size(1_023), size(1_536), size(3 << 20)], ["1023 B", "1.5 KiB", "3.0 MiB"]);
        assert_eq!(date(UnixMs(784_111_777_000)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(date(UnixMs(i64::MAX)).ends_with("9999 23:59:59 GMT"));
    }
}

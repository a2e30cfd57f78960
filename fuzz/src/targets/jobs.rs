//! Lines of jobs, and their templates: nothing panics; an invalid line has an error of one line; a job has the values of
//! its line; values are escaped in templates.

use std::collections::HashMap;

use serde_json::value::RawValue;
use weir_net::target::Target;
use weir_send::template::{Escaping, TemplateFields, has_field, unknown_field};
use weir_send::{ApiKey, JobDefaults, UnixMs};

const NOW: UnixMs = UnixMs(1_763_769_600_000);

crate::target!(|text: &str| {
    // The first line is used as URL, key and ID; the others are jobs.
    let (word, lines) = text.split_once('\n').unwrap_or(("", text));
    let base = Some("http://h:1/a?k={key}".to_owned());
    let defaults = JobDefaults { url: base, headers: vec![("x-a".into(), "{id}".into())], ..JobDefaults::default() };
    for (number, line) in (1..).zip(lines.lines()) {
        job(&defaults, number, line);
    }
    let own = JobDefaults { url: Some(word.into()), ..JobDefaults::default() };
    if own.check().is_ok() {
        job(&own, 1, "{}");
    }
    key(word);
    for template in [word, lines] {
        fill(template, word);
    }
});

fn job(defaults: &JobDefaults, number: u64, line: &str) {
    let job = match defaults.parse_line(number, line, NOW) {
        Ok(Some(job)) => job,
        Ok(None) => return assert!(line.trim().is_empty(), "{line:?}"),
        Err(error) => return assert!(!error.is_empty() && !names_a_line(&error), "{error:?}"),
    };
    assert_eq!(defaults.parse_line(number, line, NOW), Ok(Some(job.clone())), "the same line is the same job");
    assert!(job.id.as_ref().is_some_and(|id| !id.is_empty()) && job.weight > 0, "{job:?}");
    assert!(job.expires_at.is_none_or(|at| at >= NOW), "{job:?}");
    assert!(Target::parse(&job.request.url).is_ok(), "{job:?}");
    // What a line has is data; templates are the parts of the defaults.
    let templates = &job.request.templates;
    let values = templates.headers.iter().map(|index| job.request.headers[*index].1.as_str());
    let url = &job.request.url[..templates.url_bytes];
    assert!([url].into_iter().chain(values).all(|text| unknown_field(text).is_none()), "{job:?}");
    // Raw values, since numbers may be larger than 64 bits.
    let Ok(fields) = serde_json::from_str::<HashMap<String, Box<RawValue>>>(line.trim()) else {
        panic!("a job that is not an object: {line}")
    };
    let text = |name: &str| fields.get(name).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if let Some(body) = text("body") {
        assert_eq!(job.request.body, body.as_bytes());
    }
    assert_eq!(text("pinned_key"), job.key_hint);
}

/// Whether an error names a line number, beside the column: a job has one line.
fn names_a_line(error: &str) -> bool {
    let end = error.rsplit_once(" column ").filter(|(_, column)| column.bytes().all(|b| b.is_ascii_digit()));
    end.is_some_and(|(before, _)| before.ends_with(" at line 1"))
}

/// The name of a key is bounded, and does not contain the secret.
fn key(text: &str) {
    let key = ApiKey::read(text);
    assert!(text.ends_with(key.secret()) && key.name().len() <= 32, "{text:?}");
    assert!(key.matches(key.name()) && key.matches(key.default_name()));
    let rest = &text[..text.len() - key.secret().len()];
    assert!(rest.is_empty() || rest == "=" || rest == format!("{}=", key.name()), "{text:?}");
}

fn fill(template: &str, value: &str) {
    let fields = TemplateFields { key: value, nonce: 7, id: value };
    let known = ["key", "nonce", "id"].iter().any(|name| has_field(template, name));
    for escaping in [Escaping::Url, Escaping::Json, Escaping::Plain] {
        let filled = fields.fill(template, escaping);
        assert!(known || filled == template, "{template:?} became {filled:?}");
    }
    let url = fields.fill("{key}", Escaping::Url);
    assert!(url.bytes().all(|b| b.is_ascii_alphanumeric() || b"%-._*".contains(&b)), "{url}");
    let json = format!("\"{}\"", fields.fill("{id}", Escaping::Json));
    assert_eq!(serde_json::from_str::<String>(&json).ok().as_deref(), Some(value), "{json}");
}

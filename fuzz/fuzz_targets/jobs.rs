//! Lines of jobs, and the templates in them: nothing panics; a line that is no job says why in one line; a job is as its line
//! says; what is filled in stands for itself wherever it is put.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use weir::http::target::Target;
use weir::send::template::{Fields, Place, has_field, unknown_field};
use weir::send::{Credential, Form, UnixMs};

const NOW: UnixMs = UnixMs(1_763_769_600_000);

fuzz_target!(|text: &str| {
    // The first line is a URL, a key and an id at once; what follows are jobs.
    let (word, lines) = text.split_once('\n').unwrap_or(("", text));
    let base = Some("http://h:1/a?k={key}".to_owned());
    let form = Form { url: base, headers: vec![("x-a".into(), "{id}".into())], ..Form::default() };
    for (number, line) in (1..).zip(lines.lines()) {
        job(&form, number, line);
    }
    let own = Form { url: Some(word.into()), ..Form::default() };
    if own.check().is_ok() {
        job(&own, 1, "{}");
    }
    key(word);
    for template in [word, lines] {
        fill(template, word);
    }
});

fn job(form: &Form, number: u64, line: &str) {
    let job = match form.job(number, line, NOW) {
        Ok(Some(job)) => job,
        Ok(None) => return assert!(line.trim().is_empty(), "{line:?}"),
        Err(why) => return assert!(!why.is_empty() && !names_a_line(&why), "{why:?}"),
    };
    assert_eq!(form.job(number, line, NOW), Ok(Some(job.clone())), "the same line is the same job");
    assert!(job.id.as_ref().is_some_and(|id| !id.is_empty()) && job.weight > 0, "{job:?}");
    assert!(job.expires.is_none_or(|at| at >= NOW), "{job:?}");
    assert!(Target::parse(&job.request.url).is_ok(), "{job:?}");
    let values = job.request.headers.iter().map(|(_, value)| value);
    assert!([&job.request.url].into_iter().chain(values).all(|text| unknown_field(text).is_none()), "{job:?}");
    // Numbers that are too large for others are sent as they were written.
    let Ok(fields) = serde_json::from_str::<HashMap<String, Box<RawValue>>>(line.trim()) else {
        panic!("a job that is no object: {line}")
    };
    let text = |name: &str| fields.get(name).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if let Some(body) = text("body") {
        assert_eq!(job.request.body, body.as_bytes());
    }
    assert_eq!(text("key"), job.key_hint);
}

/// A line is a line: where in it something is wrong is told by the column alone. Its own words may be in the text, too.
fn names_a_line(why: &str) -> bool {
    let end = why.rsplit_once(" column ").filter(|(_, column)| column.bytes().all(|b| b.is_ascii_digit()));
    end.is_some_and(|(before, _)| before.ends_with(" at line 1"))
}

/// The name of a key is never longer than it may be, and does not hold the secret.
fn key(text: &str) {
    let key = Credential::read(text);
    assert!(text.ends_with(key.secret()) && key.name().len() <= 32, "{text:?}");
    assert!(key.is(key.name()) && key.is(key.mark()));
    let rest = &text[..text.len() - key.secret().len()];
    assert!(rest.is_empty() || rest == "=" || rest == format!("{}=", key.name()), "{text:?}");
}

fn fill(template: &str, value: &str) {
    let fields = Fields { key: value, nonce: 7, id: value };
    let known = ["key", "nonce", "id"].iter().any(|name| has_field(template, name));
    for place in [Place::Url, Place::Json, Place::Plain] {
        let filled = fields.fill(template, place);
        assert!(known || filled == template, "{template:?} became {filled:?}");
    }
    let url = fields.fill("{key}", Place::Url);
    assert!(url.bytes().all(|b| b.is_ascii_alphanumeric() || b"%-._*".contains(&b)), "{url}");
    let json = format!("\"{}\"", fields.fill("{id}", Place::Json));
    assert_eq!(serde_json::from_str::<String>(&json).ok().as_deref(), Some(value), "{json}");
}

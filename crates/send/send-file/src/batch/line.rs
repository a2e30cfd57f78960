//! Lines of a batch file as jobs: `{"custom_id", "method", "url", "body"}` of OpenAI, `{"custom_id", "params"}` of
//! Anthropic. They are held to what the provider would reject, so that a file that passes here is one there.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ResultsForm;
use super::base_url::BaseUrl;
use weir_send::api_key::fingerprint;
use weir_send::job_parser::json_error_text;
use weir_send::{Job, JobDefaults, JobOverrides, UnixMs};

/// Path of Anthropic's messages.
const MESSAGES_PATH: &str = "/v1/messages";

/// Parser of the lines of one file.
#[derive(Debug)]
pub(crate) struct BatchLines {
    form: ResultsForm,
    base: BaseUrl,
    /// Line of each custom ID, by the fingerprint of the ID: two words for each line.
    seen: HashMap<u64, u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine<'a> {
    #[serde(borrow)]
    custom_id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct BatchBody {
    #[serde(default)]
    stream: Option<bool>,
}

impl BatchLines {
    /// Parser for this form, with the base URL of the defaults.
    ///
    /// # Errors
    /// One line, without a usable `--url`.
    pub(crate) fn new(form: ResultsForm, defaults: &JobDefaults) -> Result<Self, String> {
        let Some(url) = &defaults.url else {
            return Err(format!(
                "--results {} needs --url, the base URL of the API, e.g. http://localhost:8000/v1",
                form.name()
            ));
        };
        Ok(Self { form, base: BaseUrl::of(url)?, seen: HashMap::new() })
    }

    /// Parses a line; None if it is empty.
    ///
    /// # Errors
    /// Reason, in prose.
    pub(crate) fn parse(
        &mut self,
        number: u64,
        text: &str,
        defaults: &JobDefaults,
        now: UnixMs,
    ) -> Result<Option<Job>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if !text.starts_with('{') {
            return Err(format!("not an object; {}", self.example()));
        }
        let line: BatchLine<'_> =
            serde_json::from_str(text).map_err(|error| format!("{}; {}", json_error_text(&error), self.example()))?;
        let (path, body) = self.request(&line)?;
        let id = custom_id(line.custom_id)?;
        let overrides = JobOverrides {
            id: Some(id.clone()),
            url: Some(path),
            method: Some("POST".into()),
            body: Some(body.get().as_bytes().to_vec()),
            content_type: Some(Cow::Borrowed("application/json")),
            ..JobOverrides::default()
        };
        let job = defaults.build(overrides, now)?;
        let first = *self.seen.entry(fingerprint(id.as_bytes())).or_insert(number);
        if first < number {
            return Err(format!("custom_id {id:?} is that of line {first}; each line needs its own"));
        }
        Ok(Some(job))
    }

    /// Path and body of a line.
    fn request<'a>(&self, line: &BatchLine<'a>) -> Result<(String, &'a RawValue), String> {
        let (path, name, body) = match self.form {
            ResultsForm::AnthropicBatch => {
                if line.body.is_some() || line.url.is_some() || line.method.is_some() {
                    return Err("a line of OpenAI's form; give --results openai-batch".into());
                }
                (MESSAGES_PATH, "params", line.params)
            }
            ResultsForm::OpenAiBatch | ResultsForm::Weir => {
                if line.params.is_some() {
                    return Err("a line of Anthropic's form; give --results anthropic-batch".into());
                }
                if let Some(method) = line.method.as_deref().filter(|method| *method != "POST") {
                    return Err(format!("method {method:?}; requests of a batch are POST"));
                }
                let Some(url) = line.url.as_deref() else {
                    return Err("missing url; write e.g. \"/v1/chat/completions\"".into());
                };
                if !url.starts_with('/') {
                    return Err(format!("url {url:?} is not a path; write e.g. \"/v1/chat/completions\""));
                }
                (url, "body", line.body)
            }
        };
        let Some(body) = body else {
            return Err(format!("missing {name}; {}", self.example()));
        };
        if !body.get().starts_with('{') {
            return Err(format!("{name} is not an object; {}", self.example()));
        }
        let asks: Option<BatchBody> = serde_json::from_str(body.get()).ok();
        if asks.is_some_and(|asks| asks.stream == Some(true)) {
            return Err(format!("{name} has \"stream\": true, and a batch has no streams; leave it out"));
        }
        Ok((self.base.join(path), body))
    }

    const fn example(&self) -> &'static str {
        match self.form {
            ResultsForm::AnthropicBatch => {
                r#"write e.g. {"custom_id": "a1", "params": {"model": "m", "messages": [...]}}"#
            }
            ResultsForm::OpenAiBatch | ResultsForm::Weir => {
                r#"write e.g. {"custom_id": "a1", "method": "POST", "url": "/v1/chat/completions", "body": {...}}"#
            }
        }
    }
}

fn custom_id(raw: Option<&RawValue>) -> Result<String, String> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return Err("missing custom_id; each line needs its own, by which its result is found".into());
    };
    let text: String =
        serde_json::from_str(raw.get()).map_err(|_| "custom_id is not text; write e.g. \"a1\"".to_owned())?;
    if text.is_empty() { Err("empty custom_id; each line needs its own".into()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_send::KeyHosts;

    const NOW: UnixMs = UnixMs(1_000_000);

    fn defaults() -> JobDefaults {
        let url = "http://{key}@h:1/v1";
        JobDefaults {
            url: Some(url.into()),
            headers: vec![("authorization".into(), "Bearer {key}".into())],
            key_hosts: KeyHosts::new(Some("http://h:1/"), &[]).unwrap(),
            ..JobDefaults::default()
        }
    }

    fn parse(form: ResultsForm, lines: &[&str]) -> Vec<Result<Option<Job>, String>> {
        let mut parser = BatchLines::new(form, &defaults()).unwrap();
        (1..).zip(lines).map(|(number, line)| parser.parse(number, line, &defaults(), NOW)).collect()
    }

    #[test]
    fn a_line_of_each_provider_is_a_request_to_the_base_url() {
        let body = r#"{"model": "m", "messages": [{"role": "user", "content": "{key}"}], "n": 1.50}"#;
        let openai = format!(r#"{{"custom_id": "a/1", "method": "POST", "url": "/v1/embeddings", "body": {body}}}"#);
        let anthropic = format!(r#" {{"params": {body}, "custom_id": "a/1"}} "#);
        for (form, line, url) in [
            (ResultsForm::OpenAiBatch, &openai, "http://{key}@h:1/v1/embeddings"),
            (ResultsForm::AnthropicBatch, &anthropic, "http://{key}@h:1/v1/messages"),
        ] {
            let job = parse(form, &[line]).remove(0).unwrap().unwrap();
            assert_eq!((job.id.as_deref(), job.request.method.as_str()), (Some("a/1"), "POST"));
            assert_eq!(job.request.url, url);
            assert_eq!(job.request.body, body.as_bytes(), "as it was written, and data");
            assert_eq!(job.request.literal_field(), None);
            let header = |name: &str| job.request.headers.iter().find(|(given, _)| given == name).unwrap().1.as_str();
            assert_eq!((header("content-type"), header("authorization")), ("application/json", "Bearer {key}"));
        }
        assert_eq!(parse(ResultsForm::OpenAiBatch, &["  "]), [Ok(None)]);
    }

    #[test]
    fn a_line_that_the_provider_would_reject_says_why() {
        let openai = ResultsForm::OpenAiBatch;
        for (form, line, reason) in [
            (openai, "nonsense", "not an object; write e.g. {\"custom_id\""),
            (openai, "[]", "not an object"),
            (openai, r#"{"custom_id": "#, "EOF while parsing a value at column 13; write"),
            (openai, r#"{"url": "/v1/x", "body": {}}"#, "missing custom_id; each line needs"),
            (openai, r#"{"custom_id": null, "url": "/v1/x", "body": {}}"#, "missing custom_id; each line needs"),
            (openai, r#"{"custom_id": 7, "url": "/v1/x", "body": {}}"#, "custom_id is not text"),
            (openai, r#"{"custom_id": "", "url": "/v1/x", "body": {}}"#, "empty custom_id"),
            (openai, r#"{"id": "a", "url": "/v1/x", "body": {}}"#, "unknown field `id`"),
            (openai, r#"{"custom_id": "a", "body": {}}"#, "missing url"),
            (openai, r#"{"custom_id": "a", "url": "v1/x", "body": {}}"#, "url \"v1/x\" is not a path"),
            (openai, r#"{"custom_id": "a", "url": "http://o/v1/x", "body": {}}"#, "url \"http://o/v1/x\" is not a"),
            (openai, r#"{"custom_id": "a", "method": "GET", "url": "/v1/x", "body": {}}"#, "method \"GET\"; requests"),
            (openai, r#"{"custom_id": "a", "url": "/v1/x"}"#, "missing body"),
            (openai, r#"{"custom_id": "a", "url": "/v1/x", "body": "text"}"#, "body is not an object"),
            (openai, r#"{"custom_id": "a", "url": "/v1/x", "body": {"stream": true}}"#, "body has \"stream\": true"),
            (openai, r#"{"custom_id": "a", "params": {}}"#, "a line of Anthropic's form; give --results anthropic"),
            (ResultsForm::AnthropicBatch, r#"{"custom_id": "a", "body": {}}"#, "a line of OpenAI's form; give"),
            (ResultsForm::AnthropicBatch, r#"{"custom_id": "a"}"#, "missing params"),
            (ResultsForm::AnthropicBatch, r#"{"custom_id": "a", "params": {"stream": true}}"#, "params has \"stream\""),
        ] {
            let why = parse(form, &[line]).remove(0).unwrap_err();
            assert!(why.starts_with(reason), "{line}: {why}");
        }
        let bare = BatchLines::new(openai, &JobDefaults::default()).unwrap_err();
        assert!(bare.contains("--results openai-batch needs --url"), "{bare}");
    }

    #[test]
    fn a_custom_id_is_of_one_line() {
        let line = |id: &str| format!(r#"{{"custom_id": "{id}", "params": {{}}}}"#);
        let lines = [line("a"), line("b"), "broken".to_owned(), line("a"), line("a"), line("c")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let parsed = parse(ResultsForm::AnthropicBatch, &lines);
        let oks: Vec<bool> = parsed.iter().map(Result::is_ok).collect();
        assert_eq!(oks, [true, true, false, false, false, true]);
        assert_eq!(parsed[4], Err("custom_id \"a\" is that of line 1; each line needs its own".to_owned()));
    }
}

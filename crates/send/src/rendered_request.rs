//! Rendering of a job's request: fields filled in, parts validated.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::job::JobRequest;
use super::template::{Escaping, TemplateFields};
use weir_http::target::Target;

/// Request that can be sent.
#[derive(Debug)]
pub(super) struct RenderedRequest {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl RenderedRequest {
    /// Renders a request; an error is one line of text.
    pub(super) fn new(request: &JobRequest, fields: &TemplateFields<'_>) -> Result<Self, String> {
        let url = fields.fill(&request.url, Escaping::Url);
        let target = Target::parse(&url).map_err(|error| error.to_string())?;
        let wrong = |name: &str| format!("header '{}' cannot be sent", name.escape_debug());
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for (name, value) in &request.headers {
            let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
            let value = fields.fill(value, Escaping::Plain);
            headers.append(known, HeaderValue::from_str(&value).map_err(|_| wrong(name))?);
        }
        let agent = HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(agent);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(user) = &target.userinfo
            && let Ok(value) = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(user)))
        {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("invalid method '{}'; write e.g. POST", request.method.escape_debug()))?;
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) if text.contains('{') => fields.fill(text, body_escaping(&headers, text)).into(),
            _ => Bytes::copy_from_slice(&request.body),
        };
        Ok(Self { method, target, headers, body })
    }
}

/// Escaping of fields in a body, by content type or, without one, by its first character.
fn body_escaping(headers: &HeaderMap, body: &str) -> Escaping {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/x-www-form-urlencoded") {
        Escaping::Url
    } else if kind.contains("json") || kind.is_empty() && body.trim_start().starts_with(['{', '[']) {
        Escaping::Json
    } else {
        Escaping::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, header: (&str, &str), body: &str) -> JobRequest {
        JobRequest {
            method: "POST".into(),
            url: url.into(),
            headers: vec![(header.0.into(), header.1.into())],
            body: body.into(),
        }
    }

    #[test]
    fn fields_are_filled_in_everywhere() {
        let fields = TemplateFields { key: "k&1", nonce: 5, id: "\"q\"" };
        let filled =
            |header, body| RenderedRequest::new(&request("http://h/a?k={key}", header, body), &fields).unwrap();
        let json = filled(("x-key", "{key}"), r#"{"id":"{id}"}"#);
        assert_eq!(
            (json.target.path.as_str(), &json.headers["x-key"]),
            ("/a?k=k%261", &HeaderValue::from_static("k&1"))
        );
        assert_eq!(json.body, r#"{"id":"\"q\""}"#);
        let form = filled(("content-type", "application/x-www-form-urlencoded"), "key={key}&n={nonce}");
        assert_eq!(form.body, "key=k%261&n=5");
        assert_eq!(filled(("content-type", "text/plain"), "{key} {x}").body, "k&1 {x}");
    }

    #[test]
    fn default_headers_are_added_unless_they_are_given() {
        let fields = TemplateFields { key: "", nonce: 5, id: "" };
        let filled = RenderedRequest::new(&request("http://me:pw@h/", ("Accept", "text/plain"), ""), &fields).unwrap();
        assert_eq!(filled.headers["authorization"], "Basic bWU6cHc=");
        assert_eq!(filled.headers["accept"], "text/plain");
        assert!(filled.headers["user-agent"].to_str().unwrap().starts_with("weir/"));
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_an_error_with_the_reason() {
        let fields = TemplateFields { key: "a\nb", nonce: 5, id: "" };
        let why = |url, header| RenderedRequest::new(&request(url, header, ""), &fields).unwrap_err();
        assert!(why("ftp://h", ("a", "b")).contains("'ftp'"));
        assert!(why("http://h", ("a b", "c")).contains("'a b'"));
        assert!(why("http://h", ("a", "{key}")).contains("header 'a'"), "a line break in a key gets into no header");
    }
}

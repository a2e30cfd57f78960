//! Rendering of a job's request: fields filled in, parts validated.

use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::job::JobRequest;
use super::template::{Escaping, TemplateFields};
use weir_decide::base::request_framing::CallerFraming;
use weir_http::target::{Target, TargetError};

/// Request that can be sent.
#[derive(Debug)]
pub(super) struct RenderedRequest {
    pub(super) method: Method,
    /// Target of the first such request: the same but for the path.
    pub(super) target: Rc<Target>,
    pub(super) path: String,
    pub(super) headers: Rc<HeaderMap>,
    pub(super) body: Bytes,
}

/// Renderer of requests. Jobs mostly differ in little, so what the last one was made of is kept, unless it has a secret.
#[derive(Debug, Default)]
pub(super) struct RequestRenderer {
    /// Scheme and authority of the last URL, and its target.
    last_target: Option<(String, Rc<Target>)>,
    /// Last headers without fields, and what was rendered.
    last_headers: Option<(HeaderTemplates, Rc<HeaderMap>)>,
}

/// Names and values, with the fields of the values not filled in.
type HeaderTemplates = Vec<(String, String)>;

impl RequestRenderer {
    /// Renders a request; an error is one line of text.
    pub(super) fn render(
        &mut self,
        request: &JobRequest,
        fields: &TemplateFields<'_>,
    ) -> Result<RenderedRequest, String> {
        let url = fields.fill(&request.url, Escaping::Url);
        let (target, path) = self.target(&url).map_err(|error| error.to_string())?;
        let headers = self.headers(&request.headers, fields, target.userinfo.as_deref())?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("invalid method '{}'; write e.g. POST", request.method.escape_debug()))?;
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) if text.contains('{') => fields.fill(text, body_escaping(&headers, text)).into_owned().into(),
            _ => Bytes::copy_from_slice(&request.body),
        };
        let pairs = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        CallerFraming::of(pairs, method.as_str(), body.len() as u64).map_err(|error| error.to_string())?;
        Ok(RenderedRequest { method, target, path, headers, body })
    }

    fn target(&mut self, url: &str) -> Result<(Rc<Target>, String), TargetError> {
        let (origin, rest) = Target::split(url);
        if let Some((last, target)) = &self.last_target
            && last == origin
            && let Some(path) = Target::path(rest)
        {
            return Ok((Rc::clone(target), path));
        }
        let target = Rc::new(Target::parse(url)?);
        if target.userinfo.is_none() {
            self.last_target = Some((origin.to_owned(), Rc::clone(&target)));
        }
        let path = target.path.clone();
        Ok((target, path))
    }

    fn headers(
        &mut self,
        templates: &[(String, String)],
        fields: &TemplateFields<'_>,
        userinfo: Option<&str>,
    ) -> Result<Rc<HeaderMap>, String> {
        if let Some((last, headers)) = &self.last_headers
            && last == templates
            && userinfo.is_none()
        {
            return Ok(Rc::clone(headers));
        }
        let headers = Rc::new(render_headers(templates, fields, userinfo)?);
        if userinfo.is_none() && !templates.iter().any(|(_, value)| value.contains('{')) {
            self.last_headers = Some((templates.to_vec(), Rc::clone(&headers)));
        }
        Ok(headers)
    }
}

/// Headers of a request, with those that it has by default.
fn render_headers(
    templates: &[(String, String)],
    fields: &TemplateFields<'_>,
    userinfo: Option<&str>,
) -> Result<HeaderMap, String> {
    let wrong = |name: &str| format!("header '{}' cannot be sent", name.escape_debug());
    let mut headers = HeaderMap::with_capacity(templates.len());
    for (name, value) in templates {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
        let value = fields.fill(value, Escaping::Plain);
        headers.append(known, HeaderValue::from_str(&value).map_err(|_| wrong(name))?);
    }
    let agent = HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(agent);
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    if let Some(user) = userinfo
        && let Ok(value) = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(user)))
    {
        headers.entry(AUTHORIZATION).or_insert(value);
    }
    Ok(headers)
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

    fn render(request: &JobRequest, fields: &TemplateFields<'_>) -> Result<RenderedRequest, String> {
        RequestRenderer::default().render(request, fields)
    }

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
        let filled = |header, body| render(&request("http://h/a?k={key}", header, body), &fields).unwrap();
        let json = filled(("x-key", "{key}"), r#"{"id":"{id}"}"#);
        assert_eq!((json.path.as_str(), &json.headers["x-key"]), ("/a?k=k%261", &HeaderValue::from_static("k&1")));
        assert_eq!(json.body, r#"{"id":"\"q\""}"#);
        let form = filled(("content-type", "application/x-www-form-urlencoded"), "key={key}&n={nonce}");
        assert_eq!(form.body, "key=k%261&n=5");
        assert_eq!(filled(("content-type", "text/plain"), "{key} {x}").body, "k&1 {x}");
    }

    #[test]
    fn default_headers_are_added_unless_they_are_given() {
        let fields = TemplateFields { key: "", nonce: 5, id: "" };
        let filled = render(&request("http://me:pw@h/", ("Accept", "text/plain"), ""), &fields).unwrap();
        assert_eq!(filled.headers["authorization"], "Basic bWU6cHc=");
        assert_eq!(filled.headers["accept"], "text/plain");
        assert!(filled.headers["user-agent"].to_str().unwrap().starts_with("weir/"));
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_an_error_with_the_reason() {
        let fields = TemplateFields { key: "a\nb", nonce: 5, id: "" };
        let why = |url, header| render(&request(url, header, ""), &fields).unwrap_err();
        assert!(why("ftp://h", ("a", "b")).contains("'ftp'"));
        assert!(why("http://h", ("a b", "c")).contains("'a b'"));
        assert!(why("http://h", ("transfer-encoding", "chunked")).contains("leave the header out"));
        assert!(why("http://h", ("content-length", "5")).contains("has 0 bytes"));
        assert!(why("http://h", ("a", "{key}")).contains("header 'a'"), "a line break in a key gets into no header");
    }
}

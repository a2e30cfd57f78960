//! Rendering of a job's request: fields filled in, parts validated.

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::job::JobRequest;
use super::key_hosts::KeyHosts;
use super::template::{Escaping, TemplateFields, has_field};
use super::template_parts::TemplateParts;
use weir_net::target::Target;
use weir_request::basic_auth::basic_authorization;
use weir_request::request_framing::CallerFraming;
use weir_request::url::{HttpUrl, UrlError};
use weir_request::url_text::UrlText;

/// Request that can be sent.
#[derive(Debug)]
pub(super) struct RenderedRequest {
    pub(super) method: Method,
    /// Target of the first such request: the same but for the path.
    pub(super) target: Rc<Target>,
    pub(super) path: String,
    pub(super) headers: Rc<HeaderMap>,
    pub(super) body: Bytes,
    /// Whether its host may have keys, so that a rejection of a key is one.
    pub(super) may_have_key: bool,
}

/// Renderer of requests. Jobs mostly differ in little, so what the last one was made of is kept, unless it has a secret.
#[derive(Debug, Default)]
pub(super) struct RequestRenderer {
    key_hosts: KeyHosts,
    /// Scheme and authority of the last URL, and its target.
    last_target: Option<(String, Rc<Target>)>,
    /// Last headers without fields, and what was rendered.
    last_headers: Option<(HeaderLines, Rc<HeaderMap>)>,
}

/// Names and values.
type HeaderLines = Vec<(String, String)>;

impl RequestRenderer {
    pub(super) fn new(key_hosts: KeyHosts) -> Self {
        Self { key_hosts, ..Self::default() }
    }

    /// Renders a request; an error is one line of text.
    pub(super) fn render(
        &mut self,
        request: &JobRequest,
        fields: &TemplateFields<'_>,
    ) -> Result<RenderedRequest, String> {
        let (template, data) = request.url_parts();
        let mut url = fields.fill(template, Escaping::Url);
        if dot_segments(&url) > dot_segments(template) {
            return Err("its ID or key makes '.' or '..' of a path segment; give it another ID".into());
        }
        if !data.is_empty() {
            url.to_mut().push_str(data);
        }
        let (target, path) = self.target(&url).map_err(|error| error.to_string())?;
        // A store may have jobs that were not checked when they were submitted.
        let foreign = self.foreign_origin(request, &target, fields);
        if let Some(origin) = &foreign
            && request.template_texts().any(|text| has_field(text, "key"))
        {
            return Err(format!("its request needs an API key, and {origin} may have none; give --key-host {origin}"));
        }
        let headers = self.headers(&request.headers, &request.templates, fields, target.userinfo.as_deref())?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("invalid method '{}'; write e.g. POST", request.method.escape_debug()))?;
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) if request.is_body_template() && text.contains('{') => {
                fields.fill(text, body_escaping(&headers, text)).into_owned().into()
            }
            _ => Bytes::copy_from_slice(&request.body),
        };
        let pairs = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        CallerFraming::of(pairs, method.as_str(), body.len() as u64).map_err(|error| error.to_string())?;
        Ok(RenderedRequest { method, target, path, headers, body, may_have_key: foreign.is_none() })
    }

    /// Origin of a request that may have no keys: that of its URL, or one that a `Host` of it names as it is sent.
    fn foreign_origin(&self, request: &JobRequest, target: &Target, fields: &TemplateFields<'_>) -> Option<String> {
        let is_own =
            |(name, value): &(String, String)| name.eq_ignore_ascii_case("host") && !self.key_hosts.is_given(value);
        let hosts = request.headers.iter().enumerate().filter(|(_, header)| is_own(header));
        let mut named = hosts.map(|(index, (_, value))| match request.templates.headers.contains(&index) {
            true => fields.fill(value, Escaping::Plain),
            false => Cow::Borrowed(value.as_str()),
        });
        let of_url = self.key_hosts.foreign(target, None);
        of_url.or_else(|| named.find_map(|host| self.key_hosts.foreign(target, Some(&host))))
    }

    fn target(&mut self, url: &str) -> Result<(Rc<Target>, String), UrlError> {
        let text = UrlText::of(url);
        if let Some((last, target)) = &self.last_target
            && last == text.origin
        {
            return Ok((Rc::clone(target), HttpUrl::target_of(text.after_authority)));
        }
        let target = Rc::new(Target::parse(url)?);
        if target.userinfo.is_none() {
            self.last_target = Some((text.origin.to_owned(), Rc::clone(&target)));
        }
        let path = target.path.clone();
        Ok((target, path))
    }

    fn headers(
        &mut self,
        lines: &[(String, String)],
        templates: &TemplateParts,
        fields: &TemplateFields<'_>,
        userinfo: Option<&[u8]>,
    ) -> Result<Rc<HeaderMap>, String> {
        let is_data = templates.headers.is_empty() && userinfo.is_none();
        if let Some((last, headers)) = &self.last_headers
            && is_data
            && last == lines
        {
            return Ok(Rc::clone(headers));
        }
        let headers = Rc::new(render_headers(lines, templates, fields, userinfo)?);
        if is_data {
            self.last_headers = Some((lines.to_vec(), Rc::clone(&headers)));
        }
        Ok(headers)
    }
}

/// Headers of a request, with those that it has by default.
fn render_headers(
    lines: &[(String, String)],
    templates: &TemplateParts,
    fields: &TemplateFields<'_>,
    userinfo: Option<&[u8]>,
) -> Result<HeaderMap, String> {
    let wrong = |name: &str| format!("header '{}' cannot be sent", name.escape_debug());
    let mut headers = HeaderMap::with_capacity(lines.len());
    for (index, (name, value)) in lines.iter().enumerate() {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
        let is_template = templates.headers.contains(&index);
        let value = if is_template { fields.fill(value, Escaping::Plain) } else { Cow::Borrowed(value.as_str()) };
        headers.append(known, HeaderValue::from_str(&value).map_err(|_| wrong(name))?);
    }
    let agent = HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(agent);
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    if let Some(user) = userinfo
        && let Ok(value) = HeaderValue::from_str(&basic_authorization(user))
    {
        headers.entry(AUTHORIZATION).or_insert(value);
    }
    Ok(headers)
}

/// Number of path segments that are `.` or `..`, also with escapes: a value that makes one leads to another path.
fn dot_segments(url: &str) -> usize {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |segment: &&str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        matches!(plain.as_str(), "." | "..")
    };
    if path.contains(['.', '%']) { path.split('/').filter(is_dots).count() } else { 0 }
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
    use crate::template_parts::JobBodyKind;

    fn render(request: &JobRequest, fields: &TemplateFields<'_>) -> Result<RenderedRequest, String> {
        let hosts = KeyHosts::new(None, &["http://h".into(), "https://h".into()]).unwrap();
        RequestRenderer::new(hosts).render(request, fields)
    }

    /// Request of which all parts are templates.
    fn request(url: &str, header: (&str, &str), body: &str) -> JobRequest {
        let headers = vec![(header.0.to_owned(), header.1.to_owned())];
        let mut templates = TemplateParts { body: JobBodyKind::Template, ..TemplateParts::default() };
        templates.add_url(url, url.len());
        templates.add_header(0, header.1);
        JobRequest { method: "POST".into(), url: url.into(), headers, body: body.into(), templates }
    }

    #[test]
    fn data_is_sent_byte_for_byte() {
        let fields = TemplateFields { key: "k", nonce: 5, id: "i" };
        for body in ["{key} {nonce} {id}", r#"{"key": "{key}", "b": "{nonce}{id}"}"#, "a={key}&b={id}"] {
            let data = request("http://h/{key}/{id}?n={nonce}", ("x-a", "{key} {id}"), body);
            let data = JobRequest { templates: TemplateParts::default(), ..data };
            let sent = render(&data, &fields).unwrap();
            assert_eq!((sent.path.as_str(), &sent.body[..]), ("/%7Bkey%7D/%7Bid%7D?n={nonce}", body.as_bytes()));
            assert_eq!(sent.headers["x-a"], "{key} {id}");
        }
    }

    #[test]
    fn a_key_is_rendered_for_its_hosts_only() {
        let fields = TemplateFields { key: "k", nonce: 5, id: "i" };
        for (url, header, body) in [
            ("http://o/{key}", "", ""),
            ("http://o/", "{key}", ""),
            ("http://{key}@o/", "", ""),
            ("http://h:81/", "", "{key}"),
        ] {
            let why = render(&request(url, ("x-a", header), body), &fields).unwrap_err();
            assert!(why.contains("--key-host http://"), "{url} {why}");
        }
        assert!(!render(&request("http://o/{id}", ("x-a", "{nonce}"), ""), &fields).unwrap().may_have_key);
    }

    #[test]
    fn a_host_header_decides_about_the_key_as_it_is_sent() {
        let hosts = KeyHosts::new(Some("http://h/"), &["http://v".into()]).unwrap();
        let fields = TemplateFields { key: "k", nonce: 5, id: "evil" };
        for (name, host, goes) in [
            ("Host", "h", true),
            ("host", "H:80", true),
            ("HOST", "v", true),
            ("Host", "evil", false),
            ("host", "h:81", false),
            ("Host", "{id}", false),
            ("Host", "h.evil", false),
            ("Host", "x@h", false),
        ] {
            for (url, body) in [("http://h/{key}", ""), ("http://h/", "{key}")] {
                let rendered = RequestRenderer::new(hosts.clone()).render(&request(url, (name, host), body), &fields);
                assert_eq!(rendered.is_ok(), goes, "{name}: {host}");
            }
            let plain = RequestRenderer::new(hosts.clone()).render(&request("http://h/", (name, host), ""), &fields);
            assert_eq!(plain.unwrap().may_have_key, goes, "a rejection of {host} disables no key");
        }
        let given = hosts.clone().with_defaults(&[("Host".into(), "{id}.v".into())]);
        let default = request("http://h/{key}", ("host", "{id}.v"), "");
        assert!(RequestRenderer::new(given).render(&default, &fields).unwrap().may_have_key, "the operator's own");
        let mut twice = request("http://h/{key}", ("Host", "h"), "");
        twice.headers.push(("Host".into(), "evil".into()));
        assert!(RequestRenderer::new(hosts).render(&twice, &fields).is_err());
    }

    #[test]
    fn a_value_is_no_dot_segment() {
        for (id, url, is_sent) in [
            ("..", "http://h/a/{id}", false),
            (".", "http://h/a/{id}/b", false),
            ("..", "http://h/a?x={id}", true),
            ("..", "http://h/a/v{id}", true),
            (".", "http://h/a/.{id}", false),
            ("%2e%2e", "http://h/a/{id}", true),
            ("a.b", "http://h/../{id}", true),
        ] {
            let fields = TemplateFields { key: "", nonce: 5, id };
            assert_eq!(render(&request(url, ("x-a", ""), ""), &fields).is_ok(), is_sent, "{id} {url}");
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

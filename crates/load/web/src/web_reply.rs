//! Responses and requests of a page: headers that all of its responses have, and what its requests say.

use std::rc::Rc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::access::{AccessDenial, AccessHeaders, AccessRules, WebRole};
use super::assets::PageAsset;
use super::page_service::StreamCount;
use weir_server::ResponseBody;

/// Maximum number of open streams of events.
const MAX_STREAMS: usize = 200;

/// Content policy of a page: no script, style or connection but those of this server, and no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Content policy of a document within the page: its own scripts and styles, without the origin of the page, so that it
/// reaches nothing of it.
const DOCUMENT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; \
                               script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                               form-action 'none'; frame-ancestors 'self'";

/// Stream of events that is open; the number of a thread's streams is bounded.
pub(crate) struct OpenStream(StreamCount);

impl OpenStream {
    /// Counts one more; `None` if too many are open.
    pub(crate) fn new(streams: &StreamCount) -> Option<Self> {
        if streams.get() >= MAX_STREAMS {
            return None;
        }
        streams.set(streams.get() + 1);
        Some(Self(Rc::clone(streams)))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Checks host, origin and token of a request for data, and returns the role of its sender. Files of the page need no
/// token.
///
/// # Errors
/// The response: a file of the page, or a rejection.
pub(crate) fn admit<B>(
    rules: &AccessRules,
    request: &Request<B>,
    asset: impl FnOnce(&str) -> Option<PageAsset>,
) -> Result<WebRole, Box<Response<ResponseBody>>> {
    let headers = access_headers(request.headers());
    rules.check_site(headers).map_err(|denial| Box::new(denied(denial)))?;
    if let Some(PageAsset { content_type, text }) = asset(request.uri().path()) {
        return Err(Box::new(match *request.method() {
            Method::GET => reply(StatusCode::OK, content_type, Bytes::from_static(text.as_bytes()).into()),
            _ => error(405, "only GET"),
        }));
    }
    rules.role(headers).map_err(|denial| Box::new(denied(denial)))
}

fn denied(denial: AccessDenial) -> Response<ResponseBody> {
    let (status, text) = denial.response();
    error(status, text)
}

/// Headers of a request that access depends on.
pub(crate) fn access_headers(headers: &HeaderMap) -> AccessHeaders<'_> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    AccessHeaders {
        host: text(&header::HOST),
        origin: text(&header::ORIGIN),
        fetch_site: text(&HeaderName::from_static("sec-fetch-site")),
        authorization: text(&header::AUTHORIZATION),
    }
}

/// Value of a query without its escapes, which numbers and names of files do not need.
pub(crate) fn query_value<'q>(query: Option<&'q str>, name: &str) -> Option<&'q str> {
    query?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Number of the first interval that a page lacks; none if it has those of another run.
pub(crate) fn since(query: Option<&str>, run: &str) -> Option<u64> {
    let is_own = query_value(query, "run").is_none_or(|known| known == run);
    query_value(query, "since").filter(|_| is_own)?.parse().ok()
}

/// An error, as JSON.
pub(crate) fn error(status: u16, text: &str) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    json_reply(status, &json!({ "error": text }))
}

/// Data, as JSON.
pub(crate) fn json_reply(status: StatusCode, value: &serde_json::Value) -> Response<ResponseBody> {
    reply(status, "application/json", value.to_string().into())
}

/// A response with the headers of all.
pub(crate) fn reply(status: StatusCode, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    with_policy(status, content_type, body, POLICY)
}

/// A report, for a frame of the page or a tab of its own.
pub(crate) fn document(html: String) -> Response<ResponseBody> {
    with_policy(StatusCode::OK, "text/html; charset=utf-8", html.into(), DOCUMENT_POLICY)
}

fn with_policy(
    status: StatusCode,
    content_type: &'static str,
    body: ResponseBody,
    policy: &'static str,
) -> Response<ResponseBody> {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let fields = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fields {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn what_a_page_has_is_in_the_query() {
        let of = |query| since(query, "abc");
        assert_eq!(
            [of(Some("since=17")), of(Some("a=b&since=0")), of(Some("run=abc&since=3"))],
            [Some(17), Some(0), Some(3)]
        );
        let none = [None, Some(""), Some("since="), Some("since=-1"), Some("since=3&run=abcd"), Some("since=3&run=")];
        assert_eq!(none.map(of), [None; 6]);
    }
}

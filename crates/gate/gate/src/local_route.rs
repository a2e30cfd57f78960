//! Routes that the gateway answers itself: fixed responses and redirects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderValue, Response, StatusCode, Uri, header};

use super::config::{FixedReply, RedirectRule, RouteAction};
use super::local_responses;
use super::rewrite::path_and_query;
use super::routing::Captures;
use weir_net::path::{AmbiguousPath, PathRule};
use weir_server::ResponseBody;

/// A route without an upstream.
#[derive(Debug)]
pub(super) struct LocalRoute {
    /// Name in metrics.
    pub(super) name: String,
    reply: LocalReply,
    /// Requests so far.
    count: Arc<AtomicU64>,
}

/// Reply of a route without an upstream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LocalReply {
    Fixed(FixedReply),
    Redirect(RedirectRule),
}

impl LocalReply {
    /// The reply of a route's action; None if it has calls.
    pub(super) fn of(action: &RouteAction) -> Option<Self> {
        match action {
            RouteAction::Forward => None,
            RouteAction::Respond(fixed) => Some(Self::Fixed(fixed.clone())),
            RouteAction::Redirect(rule) => Some(Self::Redirect(rule.clone())),
        }
    }
}

impl LocalRoute {
    /// A route; one of the same name before keeps its count.
    pub(super) fn new(name: String, reply: LocalReply, before: &[Self]) -> Self {
        let kept = before.iter().find(|kept| kept.name == name);
        let count = kept.map(|kept| Arc::clone(&kept.count)).unwrap_or_default();
        Self { name, reply, count }
    }

    /// Requests so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The response to a request, whose path is in normal form.
    ///
    /// # Errors
    /// Captures have made a path that is read in another way than they were.
    pub(super) fn respond(
        &self,
        captures: &Captures<'_>,
        host: Option<&str>,
        path: &str,
        uri: &Uri,
        rule: PathRule,
    ) -> Result<Response<ResponseBody>, AmbiguousPath> {
        self.count.fetch_add(1, Ordering::Relaxed);
        match &self.reply {
            LocalReply::Fixed(fixed) => {
                let mut response = fixed.response.response();
                for (name, value) in &fixed.headers {
                    response.headers_mut().insert(name, value.clone());
                }
                Ok(response)
            }
            LocalReply::Redirect(to) => Ok(redirect(to, &location(to, captures, host, (path, uri), rule)?)),
        }
    }
}

fn redirect(rule: &RedirectRule, location: &str) -> Response<ResponseBody> {
    let Ok(value) = HeaderValue::try_from(location) else {
        return local_responses::text(StatusCode::BAD_REQUEST, "no redirect for this URL");
    };
    let status = StatusCode::from_u16(rule.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
    let mut response = local_responses::text(status, location);
    response.headers_mut().insert(header::LOCATION, value);
    response
}

/// The URL of a redirect, absolute only as far as the rule names scheme or host: the gateway may not know the scheme
/// and the port that its caller used.
fn location(
    rule: &RedirectRule,
    captures: &Captures<'_>,
    host: Option<&str>,
    (path, uri): (&str, &Uri),
    paths: PathRule,
) -> Result<String, AmbiguousPath> {
    let target = path_and_query(rule.path.as_deref(), &rule.query, captures, (path, uri.query()), paths)?;
    // A path that begins with two slashes is another host's URL (RFC 3986, 4.2), which a caller could choose; browsers
    // take a backslash for a slash.
    let target = format!("/{}", target.trim_start_matches(['/', '\\'])).replace('\\', "%5C");
    let location = match (&rule.scheme, &rule.host) {
        (None, None) => target,
        (None, Some(host)) => format!("//{host}{target}"),
        (Some(scheme), host_of_rule) => {
            // Another scheme has another port.
            let requested = host.map(without_port).filter(|host| !host.is_empty());
            match host_of_rule.as_deref().or(requested) {
                Some(host) => format!("{scheme}://{host}{target}"),
                None => target,
            }
        }
    };
    Ok(location)
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        // Colons in the brackets of an IPv6 address are not before a port.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

    use http::{HeaderMap, Method};

    use super::*;
    use crate::config::{QueryRule, RouteConfig};
    use crate::routing::{RequestFacts, RouteMatch, Routes};

    fn to(scheme: Option<&str>, host: Option<&str>, path: Option<&str>, target: &str) -> String {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (scheme, host, path) = (text(scheme), text(host), text(path));
        let rule = RedirectRule { status: 308, scheme, host, path, query: QueryRule::Keep };
        let routes = Routes::new(&[RouteConfig::forward_all("", "/old/{*rest}")]).unwrap();
        let (uri, method, headers) = (target.parse::<Uri>().unwrap(), Method::GET, HeaderMap::new());
        let facts = RequestFacts { method: &method, host: None, path: uri.path(), query: None, headers: &headers };
        let RouteMatch::Route { captures, .. } = routes.find(&facts) else { panic!("{target}") };
        location(&rule, &captures, Some("own.example:8080"), (uri.path(), &uri), PathRule::default()).unwrap()
    }

    #[test]
    fn what_a_redirect_does_not_name_is_the_requests() {
        for (scheme, host, path, expected) in [
            (None, None, Some("/new/{rest}"), "/new/a/b?c=d"),
            (Some("https"), None, None, "https://own.example/old/a/b?c=d"),
            (Some("https"), Some("x.example:8443"), Some("/"), "https://x.example:8443/?c=d"),
            (None, Some("x.example"), None, "//x.example/old/a/b?c=d"),
        ] {
            assert_eq!(to(scheme, host, path, "/old/a/b?c=d"), expected);
        }
    }

    #[test]
    fn a_caller_cannot_choose_the_host_of_a_redirect() {
        for target in ["/old//evil.example/x", "/old/evil.example/x"] {
            assert_eq!(to(None, None, Some("/{rest}"), target), "/evil.example/x");
        }
        assert_eq!(to(None, Some("x.example"), Some("/{rest}"), "/old//evil"), "//x.example/evil");
    }
}

//! Listeners of a configuration at runtime: the routes of each, and redirects to HTTPS.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, Uri, header};

use super::config::{Config, ListenerConfig};
use super::local_responses;
use super::routing::{RequestFacts, RouteMatch, Routes};
use weir_server::ResponseBody;

/// Routes of a listener, and its redirect to HTTPS.
#[derive(Debug)]
pub(super) struct ListenerRuntime {
    pub(super) name: String,
    /// Port of HTTPS in the URLs that all its requests are redirected to.
    redirect_port: Option<u16>,
    routes: Arc<ListenerRoutes>,
}

/// Table of the routes that a listener has.
#[derive(Debug)]
struct ListenerRoutes {
    table: Routes,
    /// Indexes of these routes in the configuration; None if they are all there are.
    indexes: Option<Vec<usize>>,
}

impl ListenerRoutes {
    fn new(config: &Config, listener: Option<&str>) -> Result<Self, String> {
        let is_here =
            |names: &[String]| names.is_empty() || listener.is_some_and(|it| names.iter().any(|name| name == it));
        if config.routes.iter().all(|route| is_here(&route.listeners)) {
            return Ok(Self { table: Routes::new(&config.routes)?, indexes: None });
        }
        let here = config.routes.iter().enumerate().filter(|(_, route)| is_here(&route.listeners));
        let (indexes, routes): (_, Vec<_>) = here.map(|(index, route)| (index, route.clone())).unzip();
        let table = Routes::new(&routes)?;
        Ok(Self { table, indexes: Some(indexes) })
    }
}

impl ListenerRuntime {
    /// The listeners of a configuration, in the order of `running`, those that the server has opened; a server without
    /// listeners of its own in the configuration has one for all routes.
    ///
    /// # Errors
    /// Two routes match the same requests; in one line.
    pub(super) fn all(config: &Config, running: Option<&[Self]>) -> Result<Vec<Self>, String> {
        let names: Vec<&str> = match running {
            Some(running) => running.iter().map(|listener| listener.name.as_str()).collect(),
            None if config.listeners.is_empty() => vec![ListenerConfig::ONLY],
            None => config.listeners.iter().map(|listener| listener.name.as_str()).collect(),
        };
        let mut everywhere: Option<Arc<ListenerRoutes>> = None;
        let mut listeners = Vec::new();
        for name in names {
            let routes = Arc::new(ListenerRoutes::new(config, Some(name))?);
            // One table for all listeners that have the same routes.
            let routes = match &everywhere {
                Some(all) if routes.indexes.is_none() => Arc::clone(all),
                _ => routes,
            };
            if routes.indexes.is_none() {
                everywhere = Some(Arc::clone(&routes));
            }
            let configured = config.listeners.iter().find(|listener| listener.name == name);
            let redirect_port = configured.and_then(|listener| listener.redirect_to_https);
            listeners.push(Self { name: name.to_owned(), redirect_port, routes });
        }
        Ok(listeners)
    }

    /// Finds the route of a request by its path in normal form.
    pub(super) fn find<'a>(&'a self, request: &RequestFacts<'a>) -> RouteMatch<'a> {
        match (self.routes.table.find(request), &self.routes.indexes) {
            (RouteMatch::Route { index, captures }, Some(indexes)) => match indexes.get(index) {
                Some(index) => RouteMatch::Route { index: *index, captures },
                None => RouteMatch::NotFound,
            },
            (found, _) => found,
        }
    }

    /// The redirect to HTTPS, if all requests of this listener get one.
    pub(super) fn redirect(&self, host: Option<&str>, uri: &Uri) -> Option<Response<ResponseBody>> {
        let location = https_url(self.redirect_port?, host, uri);
        let Some(location) = location else {
            return Some(local_responses::text(StatusCode::BAD_REQUEST, "no Host header to redirect to HTTPS by"));
        };
        let mut response = Response::new(ResponseBody::from(Bytes::new()));
        // Not 301 or 302, by which clients turn a POST into a GET (RFC 9110, 15.4.9).
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(header::LOCATION, location);
        Some(response)
    }
}

/// URL of a request with HTTPS at a port.
fn https_url(port: u16, host: Option<&str>, uri: &Uri) -> Option<HeaderValue> {
    let host = host.filter(|host| !host.is_empty())?;
    let name = match host.rfind(':') {
        // Colons in the brackets of an IPv6 address are not before a port.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    // `OPTIONS *` is about the whole server.
    let target = if target.starts_with('/') { target } else { "/" };
    HeaderValue::try_from(format!("https://{name}{port}{target}")).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_redirect_keeps_host_path_and_query() {
        for (port, host, uri, expected) in [
            (443, "example.org", "/a?b=c", "https://example.org/a?b=c"),
            (443, "example.org:8080", "http://example.org:8080/a", "https://example.org/a"),
            (8443, "example.org:80", "/", "https://example.org:8443/"),
            (8443, "[::1]", "/", "https://[::1]:8443/"),
            (8443, "[::1]:80", "/%41//b", "https://[::1]:8443/%41//b"),
            (443, "example.org", "*", "https://example.org/"),
        ] {
            let url = https_url(port, Some(host), &uri.parse().unwrap());
            assert_eq!(url.unwrap(), expected, "{port} {host} {uri}");
        }
        assert_eq!(https_url(443, None, &Uri::default()), None);
        assert_eq!(https_url(443, Some(""), &Uri::default()), None);
    }
}

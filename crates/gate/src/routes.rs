//! Routing: the most specific path wins; among its routes one with the host before one for any, then one with the
//! method before one for all.

use http::Method;
use matchit::{Match, Router};

use super::config::{Config, RouteConfig, captures};

/// Table of all routes.
#[derive(Clone)]
pub(super) struct Routes {
    paths: Router<Vec<RouteEntry>>,
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Routes")
    }
}

/// One route of a path.
#[derive(Clone, Debug)]
struct RouteEntry {
    index: usize,
    methods: Vec<Method>,
    host: Option<String>,
    /// Names of the route's captures, in order.
    names: Vec<String>,
}

/// Captured segments of a request's path.
#[derive(Debug)]
pub(super) struct Captures<'a> {
    names: &'a [String],
    values: matchit::Params<'a, 'a>,
}

impl<'a> Captures<'a> {
    /// Value of a capture.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let index = self.names.iter().position(|known| known == name)?;
        self.values.iter().nth(index).map(|(_, value)| value)
    }
}

/// Result of routing a request.
#[derive(Debug)]
pub(super) enum RouteMatch<'a> {
    /// A route, by its index in the configuration.
    Route {
        index: usize,
        captures: Captures<'a>,
    },
    /// The path has routes, but none for this method; these are allowed.
    MethodNotAllowed {
        allow: String,
    },
    NotFound,
}

impl Routes {
    /// The table of a configuration's routes.
    ///
    /// # Errors
    /// Two routes match the same requests; in one line.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let mut by_path: Vec<(String, Vec<RouteEntry>)> = Vec::new();
        for (index, RouteConfig { path, methods, host, .. }) in config.routes.iter().enumerate() {
            let names = captures(path).map_err(|(what, _)| format!("route {path}: {what}"))?;
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            let path = number_captures(path);
            let entry = RouteEntry { index, methods: methods.clone(), host: host.clone(), names };
            match by_path.iter_mut().find(|(known, _)| *known == path) {
                Some((_, entries)) => entries.push(entry),
                None => by_path.push((path, vec![entry])),
            }
        }
        let mut paths = Router::new();
        for (path, mut entries) in by_path.clone() {
            // In order of specificity.
            entries.sort_by_key(|entry| (entry.host.is_none(), entry.methods.is_empty()));
            paths.insert(&*path, entries).map_err(|error| format!("route {path}: {error}"))?;
        }
        for (path, mut entries) in by_path {
            // `{*rest}` also matches an empty rest.
            let Some((base, _)) = path.split_once("{*") else { continue };
            entries.sort_by_key(|entry| (entry.host.is_none(), entry.methods.is_empty()));
            // A route with exactly that path comes first.
            let _ = paths.insert(base, entries);
        }
        Ok(Self { paths })
    }

    /// Finds the route of a request by its path in normal form.
    pub(super) fn find<'a>(&'a self, method: &Method, host: Option<&str>, path: &'a str) -> RouteMatch<'a> {
        let Ok(Match { value: entries, params: values }) = self.paths.at(path) else { return RouteMatch::NotFound };
        let mut has_route = false;
        for entry in entries {
            if !entry.host.as_deref().is_none_or(|wanted| host.is_some_and(|host| matches_host(host, wanted))) {
                continue;
            }
            if entry.methods.is_empty() || entry.methods.contains(method) {
                return RouteMatch::Route { index: entry.index, captures: Captures { names: &entry.names, values } };
            }
            has_route = true;
        }
        if !has_route {
            return RouteMatch::NotFound;
        }
        let mut allow: Vec<&str> = entries.iter().flat_map(|entry| &entry.methods).map(Method::as_str).collect();
        allow.sort_unstable();
        allow.dedup();
        RouteMatch::MethodNotAllowed { allow: allow.join(", ") }
    }
}

/// The path with numbers in place of capture names, which may differ between routes of one path.
fn number_captures(path: &str) -> String {
    let mut count = 0;
    let mut segment = |segment: &str| {
        let star = if segment.starts_with("{*") { "*" } else { "" };
        if !segment.starts_with('{') {
            return segment.to_owned();
        }
        count += 1;
        format!("{{{star}{count}}}")
    };
    path.split('/').map(&mut segment).collect::<Vec<_>>().join("/")
}

/// Whether a Host header's value is `wanted` (lower case, without port).
fn matches_host(host: &str, wanted: &str) -> bool {
    let name = match host.rfind(':') {
        // Colons in the brackets of an IPv6 address are not before a port.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    // The root's dot is not part of the name.
    name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case(wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn table(routes: &[(&str, &str, Option<&str>)]) -> Routes {
        let routes = routes.iter().map(|(methods, path, host)| RouteConfig {
            methods: methods.split_whitespace().map(|method| method.parse().unwrap()).collect(),
            host: host.map(str::to_owned),
            ..RouteConfig::forward_all("upstream", path)
        });
        Routes::new(&Config { routes: routes.collect(), ..Config::default() }).unwrap()
    }

    fn found(routes: &Routes, method: &str, host: &str, path: &str) -> String {
        match routes.find(&method.parse().unwrap(), Some(host), path) {
            RouteMatch::Route { index, captures } => {
                let held = captures.names.iter().map(|name| (name, captures.get(name)));
                let held = held.filter_map(|(name, value)| Some(format!(" {name}={}", value?)));
                format!("{index}{}", held.collect::<String>())
            }
            RouteMatch::MethodNotAllowed { allow } => format!("allow {allow}"),
            RouteMatch::NotFound => "nothing".to_owned(),
        }
    }

    #[test]
    fn the_most_specific_path_wins_whatever_the_order() {
        let routes = table(&[("", "/{*rest}", None), ("", "/api/{id}", None), ("", "/api/me", None)]);
        for (path, expected) in [
            ("/api/me", "2"),
            ("/api/7", "1 id=7"),
            ("/api/7/x", "0 rest=api/7/x"),
            ("/", "0"),
            ("/a%2Fb", "0 rest=a%2Fb"),
        ] {
            assert_eq!(found(&routes, "GET", "a", path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_named_comes_before_what_is_not() {
        let routes = table(&[
            ("", "/x", None),
            ("GET", "/x", None),
            ("POST", "/y", None),
            ("", "/x", Some("api.example")),
            ("PUT", "/y", Some("api.example")),
        ]);
        for (method, host, path, expected) in [
            ("GET", "other", "/x", "1"),
            ("POST", "other:80", "/x", "0"),
            ("GET", "API.example:8080", "/x", "3"),
            ("GET", "api.example.", "/x", "3"),
            ("GET", "api.example.:80", "/x", "3"),
            ("GET", "api.example..", "/x", "1"),
            ("PUT", "api.example", "/y", "4"),
            ("POST", "api.example", "/y", "2"),
            ("GET", "other", "/y", "allow POST, PUT"),
            ("GET", "other", "/z", "nothing"),
        ] {
            assert_eq!(found(&routes, method, host, path), expected, "{method} {host} {path}");
        }
    }

    #[test]
    fn routes_may_call_the_same_place_by_different_names() {
        let routes = table(&[
            ("GET", "/a/{x}", None),
            ("POST", "/a/{y}", None),
            ("", "/a/{user}/b", None),
            ("", "/a/{group}/c/{*rest}", None),
        ]);
        for (method, path, expected) in [
            ("GET", "/a/1", "0 x=1"),
            ("POST", "/a/1", "1 y=1"),
            ("PUT", "/a/1", "allow GET, POST"),
            ("GET", "/a/1/b", "2 user=1"),
            ("GET", "/a/1/c/d/e", "3 group=1 rest=d/e"),
            ("GET", "/a/1/c/", "3 group=1"),
        ] {
            assert_eq!(found(&routes, method, "a", path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_route_for_one_host_is_not_there_for_another() {
        let routes = table(&[("", "/x", Some("::1"))]);
        assert_eq!(found(&routes, "GET", "other", "/x"), "nothing");
    }
}

//! Which route a request takes: the most specific path; of several there, one that names the host before one for any,
//! then one that names the method before one for all.

use http::Method;
use matchit::{Match, Router};

use super::config::{Config, RouteConfig, captures};

/// All routes.
#[derive(Clone)]
pub(super) struct Routes {
    paths: Router<Vec<RouteEntry>>,
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Routes")
    }
}

/// One route that a path leads to.
#[derive(Clone, Debug)]
struct RouteEntry {
    index: usize,
    methods: Vec<Method>,
    host: Option<String>,
    /// What the route calls its captures, in their order.
    names: Vec<String>,
}

/// What a path holds at the places that its route names.
#[derive(Debug)]
pub(super) struct Captures<'a> {
    names: &'a [String],
    values: matchit::Params<'a, 'a>,
}

impl<'a> Captures<'a> {
    /// What the path holds where its route has this name.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let place = self.names.iter().position(|known| known == name)?;
        self.values.iter().nth(place).map(|(_, held)| held)
    }
}

/// What was found for a request.
#[derive(Debug)]
pub(super) enum RouteMatch<'a> {
    /// A route, by its place in the configuration.
    Route {
        index: usize,
        captures: Captures<'a>,
    },
    /// The path is there, but not for this method; these are allowed.
    MethodNotAllowed {
        allow: String,
    },
    NotFound,
}

impl Routes {
    /// The table of a configuration's routes.
    ///
    /// # Errors
    /// When two of them cannot be told apart, in one line.
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
            // The first that fits is the most specific.
            entries.sort_by_key(|entry| (entry.host.is_none(), entry.methods.is_empty()));
            paths.insert(&*path, entries).map_err(|error| format!("route {path}: {error}"))?;
        }
        for (path, mut entries) in by_path {
            // What stands for all that follows stands for nothing, too.
            let Some((base, _)) = path.split_once("{*") else { continue };
            entries.sort_by_key(|entry| (entry.host.is_none(), entry.methods.is_empty()));
            // Where a route of its own stands, that one counts.
            let _ = paths.insert(base, entries);
        }
        Ok(Self { paths })
    }

    /// Finds the route of a request by its path in normal form.
    pub(super) fn find<'a>(&'a self, method: &Method, host: Option<&str>, path: &'a str) -> RouteMatch<'a> {
        let Ok(Match { value: entries, params: held }) = self.paths.at(path) else { return RouteMatch::NotFound };
        let mut there = false;
        for entry in entries {
            if !entry.host.as_deref().is_none_or(|wanted| host.is_some_and(|host| matches_host(host, wanted))) {
                continue;
            }
            if entry.methods.is_empty() || entry.methods.contains(method) {
                return RouteMatch::Route {
                    index: entry.index,
                    captures: Captures { names: &entry.names, values: held },
                };
            }
            there = true;
        }
        if !there {
            return RouteMatch::NotFound;
        }
        let mut allow: Vec<&str> = entries.iter().flat_map(|entry| &entry.methods).map(Method::as_str).collect();
        allow.sort_unstable();
        allow.dedup();
        RouteMatch::MethodNotAllowed { allow: allow.join(", ") }
    }
}

/// The path with numbers in place of its captures' names: routes may call the same place by different names.
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

/// Whether a Host header's value names `wanted` (lower case, without port).
fn matches_host(host: &str, wanted: &str) -> bool {
    let name = match host.rfind(':') {
        // Not a colon within the brackets of an IPv6 address.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    // The dot of the root is no part of the name.
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

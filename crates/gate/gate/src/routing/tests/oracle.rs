//! The same routes and requests, searched naively.

use http::{HeaderMap, Method};
use proptest::prelude::*;

use super::super::conflict::conflicts;
use super::super::{Captures, RequestFacts, RouteConflict, RouteMatch, Routes};
use super::{header, one_of, route, with};
use crate::config::{Condition, ConditionSource, HostMatch, RouteConfig, ValueCondition};

const HOSTS: [&str; 5] = ["", "a.x", "*.x", "*.b.x", "a.x *.b.x"];
const PATHS: [&str; 10] = ["/", "/{*r}", "/u", "/u/v", "/{s}", "/{s}/v", "/u/{*r}", "/u{s}/v", "/{s:[uv]}", "/{s}/{t}"];
const METHODS: [&str; 4] = ["", "GET", "PUT", "GET PUT"];

fn conditions() -> Vec<Vec<Condition>> {
    let x = |test| header("x-a", test);
    vec![
        vec![],
        vec![x(ValueCondition::Present)],
        vec![x(ValueCondition::Absent)],
        vec![x(one_of(&["1"]))],
        vec![x(one_of(&["1", "2"]))],
        vec![x(one_of(&["2"])), header("x-b", ValueCondition::Present)],
    ]
}

fn any_route() -> impl Strategy<Value = RouteConfig> {
    let parts = (0..METHODS.len(), 0..HOSTS.len(), 0..PATHS.len(), 0..conditions().len());
    parts.prop_map(|(method, host, path, set)| {
        with(route(METHODS[method], HOSTS[host], PATHS[path]), &conditions()[set])
    })
}

/// A request: method, host, path, values of `x-a` and of `x-b`.
fn any_request() -> impl Strategy<Value = (Method, &'static str, &'static str, HeaderMap)> {
    let methods = prop::sample::select(vec![Method::GET, Method::PUT, Method::DELETE]);
    let hosts = prop::sample::select(vec!["a.x", "c.x", "d.b.x", "other", "x"]);
    let paths = prop::sample::select(vec!["/", "/u", "/v", "/w", "/u/v", "/uu/v", "/w/v", "/u/w", "/u/", "/u/v/w"]);
    let values = prop::option::of(prop::sample::select(vec!["1", "2", "3"]));
    (methods, hosts, paths, values, any::<bool>()).prop_map(|(method, host, path, a, has_b)| {
        let lines = a.map(|a| ("x-a", a)).into_iter().chain(has_b.then_some(("x-b", "1")));
        (method, host, path, super::headers(&lines.collect::<Vec<_>>()))
    })
}

/// Rank of the best host that fits, the lowest first.
fn host_rank(route: &RouteConfig, host: &str) -> Option<usize> {
    if route.hosts.is_empty() {
        return Some(usize::MAX);
    }
    let rank = |pattern: &HostMatch| match pattern {
        HostMatch::Exact(name) => (name == host).then_some(0),
        HostMatch::Suffix(suffix) => (host.ends_with(suffix) && host != suffix).then(|| 1000 - suffix.len()),
    };
    route.hosts.iter().filter_map(rank).min()
}

/// Ranks of the segments, the lowest first; a pattern's is in between by its fixed text.
fn path_rank(pattern: &str, path: &str) -> Option<Vec<usize>> {
    let (mut ranks, mut left) = (Vec::new(), Some(&path[1..]));
    for segment in pattern[1..].split('/') {
        let rest = left?;
        if segment == "{*r}" {
            ranks.push(100);
            return Some(ranks);
        }
        let (text, behind) = rest.split_once('/').map_or((rest, None), |(text, behind)| (text, Some(behind)));
        ranks.push(match segment {
            "{s}" | "{t}" if !text.is_empty() => 50,
            "{s:[uv]}" if matches!(text, "u" | "v") => 40,
            "u{s}" if text.len() > 1 && text.starts_with('u') => 39,
            fixed if fixed == text => 0,
            _ => return None,
        });
        left = behind;
    }
    left.is_none().then_some(ranks)
}

fn meets(condition: &Condition, headers: &HeaderMap) -> bool {
    let ConditionSource::Header(name) = &condition.source else { panic!("{condition}") };
    let value = headers.get(name).map(|value| value.to_str().unwrap());
    match &condition.test {
        ValueCondition::Present => value.is_some(),
        ValueCondition::Absent => value.is_none(),
        ValueCondition::OneOf(all) => value.is_some_and(|value| all.iter().any(|one| one == value)),
        ValueCondition::Matches(_) => panic!("{condition}"),
    }
}

/// The route that a search through all of them finds.
fn naive(routes: &[RouteConfig], (method, host, path, headers): &(Method, &str, &str, HeaderMap)) -> Option<usize> {
    let rank = |(index, route): (usize, &RouteConfig)| {
        let has_method = route.methods.is_empty() || route.methods.contains(method);
        if !has_method || !route.conditions.iter().all(|condition| meets(condition, headers)) {
            return None;
        }
        let place = (host_rank(route, host)?, path_rank(&route.path, path)?);
        Some((place, route.methods.is_empty(), usize::MAX - route.conditions.len(), index))
    };
    routes.iter().enumerate().filter_map(rank).min().map(|(_, _, _, index)| index)
}

/// The path of a route with its captures filled in.
fn filled(pattern: &str, captures: &Captures<'_>) -> String {
    let (mut text, mut rest) = (String::new(), pattern);
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, after) = behind.split_once('}').unwrap();
        let name = inner.trim_start_matches('*').split(':').next().unwrap();
        text += before;
        text += captures.get(name).unwrap();
        rest = after;
    }
    text + rest
}

proptest! {
    #[test]
    fn any_path_is_parsed_or_rejected_and_any_request_routed(
        pattern in "/[a{}:*/.\\[\\]()+|0-9]{0,16}", path in "/?[a/.0-9{}*]{0,12}"
    ) {
        let routes = [route("", "", &pattern), route("", "", "/{*r}")];
        let Ok(table) = Routes::new(&routes) else { return Ok(()) };
        let headers = HeaderMap::new();
        let facts = RequestFacts { method: &Method::GET, host: None, path: &path, query: None, headers: &headers };
        match table.find(&facts) {
            RouteMatch::Route { .. } => prop_assert!(path.starts_with('/')),
            RouteMatch::NotFound => prop_assert!(!path.starts_with('/')),
            RouteMatch::MethodNotAllowed { allow } => prop_assert!(false, "{allow}"),
        }
        conflicts(&routes);
    }

    #[test]
    fn the_table_finds_what_a_search_through_all_routes_finds(
        routes in prop::collection::vec(any_route(), 0..12), requests in prop::collection::vec(any_request(), 1..40)
    ) {
        let table = Routes::new(&routes).unwrap();
        let conflicts = conflicts(&routes);
        let is_unreachable = |index| {
            conflicts.iter().any(|it| matches!(it, RouteConflict::Unreachable { route, .. } if *route == index))
        };
        for request in &requests {
            let (method, host, path, headers) = request;
            let facts = RequestFacts { method, host: Some(host), path, query: None, headers };
            let found = match table.find(&facts) {
                RouteMatch::Route { index, captures } => {
                    prop_assert_eq!(&filled(&routes[index].path, &captures), path);
                    Some(index)
                }
                RouteMatch::MethodNotAllowed { allow } => {
                    let others = routes.iter().map(|route| RouteConfig { methods: Vec::new(), ..route.clone() });
                    prop_assert!(naive(&others.collect::<Vec<_>>(), request).is_some());
                    prop_assert!(!allow.split(", ").any(|allowed| allowed == method.as_str()) && !allow.is_empty());
                    None
                }
                RouteMatch::NotFound => None,
            };
            prop_assert_eq!(found, naive(&routes, request), "{:?}", request);
            prop_assert!(!found.is_some_and(is_unreachable), "{:?}", conflicts);
        }
    }
}

//! Routing by examples, and against a naive search.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod oracle;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::conflict::conflicts;
use super::{RequestFacts, RouteConflict, RouteMatch, Routes};
use crate::config::{Condition, ConditionSource, HostMatch, RouteConfig, ValueCondition, ValuePattern};

fn host(text: &str) -> HostMatch {
    match text.strip_prefix('*') {
        Some(suffix) => HostMatch::Suffix(suffix.to_owned()),
        None => HostMatch::Exact(text.to_owned()),
    }
}

/// A route from its methods, hosts and path.
fn route(methods: &str, hosts: &str, path: &str) -> RouteConfig {
    RouteConfig {
        methods: methods.split_whitespace().map(|method| method.parse().unwrap()).collect(),
        hosts: hosts.split_whitespace().map(host).collect(),
        ..RouteConfig::forward_all("upstream", path)
    }
}

fn header(name: &'static str, test: ValueCondition) -> Condition {
    Condition { source: ConditionSource::Header(HeaderName::from_static(name)), test }
}

fn one_of(values: &[&str]) -> ValueCondition {
    ValueCondition::OneOf(values.iter().map(ToString::to_string).collect())
}

fn with(mut route: RouteConfig, conditions: &[Condition]) -> RouteConfig {
    route.conditions = conditions.to_vec();
    route
}

fn found_with(routes: &[RouteConfig], method: &str, host: &str, target: &str, headers: &HeaderMap) -> String {
    let table = Routes::new(routes).unwrap();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let method: Method = method.parse().unwrap();
    match table.find(&RequestFacts { method: &method, host: Some(host), path, query, headers }) {
        RouteMatch::Route { index, captures } => {
            let captures = captures.all().map(|(name, value)| format!(" {name}={value}"));
            format!("{index}{}", captures.collect::<String>())
        }
        RouteMatch::MethodNotAllowed { allow } => format!("allow {allow}"),
        RouteMatch::NotFound => "nothing".to_owned(),
    }
}

fn found(routes: &[RouteConfig], method: &str, host: &str, target: &str) -> String {
    found_with(routes, method, host, target, &HeaderMap::new())
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

#[test]
fn the_most_specific_path_wins_whatever_the_order() {
    let routes = ["/{*rest}", "/api/{id}", "/api/me", "/api/{file}.json", "/api/{n:[0-9]+}"];
    let routes = routes.map(|path| route("", "", path));
    for (path, expected) in [
        ("/api/me", "2"),
        ("/api/x", "1 id=x"),
        ("/api/7", "4 n=7"),
        ("/api/7.json", "3 file=7"),
        ("/api/.json", "1 id=.json"),
        ("/api/7/x", "0 rest=api/7/x"),
        ("/api/", "0 rest=api/"),
        ("/", "0 rest="),
        ("/a%2Fb", "0 rest=a%2Fb"),
    ] {
        assert_eq!(found(&routes, "GET", "a", path), expected, "{path}");
    }
}

#[test]
fn the_rest_may_be_empty_but_not_missing() {
    let routes = [route("", "", "/a/{*rest}")];
    for (path, expected) in [("/a/", "0 rest="), ("/a/b//c", "0 rest=b//c"), ("/a", "nothing"), ("*", "nothing")] {
        assert_eq!(found(&routes, "GET", "a", path), expected, "{path}");
    }
}

#[test]
fn a_path_that_fits_further_on_is_found_after_one_that_does_not() {
    let routes = [route("", "", "/a/b/c"), route("", "", "/a/{x}/d"), route("", "", "/{y}/b/{*rest}")];
    for (path, expected) in [("/a/b/c", "0"), ("/a/b/d", "1 x=b"), ("/a/b/e", "2 y=a rest=e"), ("/a/c/e", "nothing")] {
        assert_eq!(found(&routes, "GET", "a", path), expected, "{path}");
    }
}

#[test]
fn a_host_comes_before_a_wildcard_and_that_before_any() {
    let routes = [
        route("", "", "/x"),
        route("", "*.example.org", "/x"),
        route("", "*.api.example.org", "/x"),
        route("", "api.example.org other.example", "/x"),
        route("", "api.example.org", "/{*rest}"),
    ];
    for (host, path, expected) in [
        ("a.example", "/x", "0"),
        ("example.org", "/x", "0"),
        ("b.example.org", "/x", "1"),
        ("c.b.example.org", "/x", "1"),
        ("v1.api.example.org", "/x", "2"),
        ("API.example.org.:8080", "/x", "3"),
        ("other.example:80", "/x", "3"),
        ("api.example.org..", "/x", "0"),
        ("api.example.org", "/y", "4 rest=y"),
        ("[::1]:80", "/x", "0"),
        ("", "/x", "0"),
    ] {
        assert_eq!(found(&routes, "GET", host, path), expected, "{host}{path}");
    }
}

#[test]
fn methods_come_before_conditions_and_more_conditions_before_fewer() {
    let beta = || header("x-beta", ValueCondition::Present);
    let routes = [
        route("", "", "/x"),
        route("GET", "", "/x"),
        with(route("", "", "/x"), &[beta()]),
        with(route("", "", "/x"), &[beta(), header("x-version", one_of(&["2", "3"]))]),
        route("", "", "/{*rest}"),
        route("POST", "", "/y"),
    ];
    for (method, path, lines, expected) in [
        ("GET", "/x", &[("x-beta", "1")][..], "1"),
        ("PUT", "/x", &[], "0"),
        ("PUT", "/x", &[("x-beta", "1")], "2"),
        ("PUT", "/x", &[("x-beta", "1"), ("x-version", "3")], "3"),
        ("PUT", "/x", &[("x-beta", "1"), ("x-version", "4")], "2"),
        ("PUT", "/y", &[], "4 rest=y"),
        ("POST", "/y", &[], "5"),
    ] {
        assert_eq!(found_with(&routes, method, "a", path, &headers(lines)), expected, "{method} {path} {lines:?}");
    }
}

#[test]
fn a_method_is_not_allowed_only_if_nothing_else_is_in_the_way() {
    let routes = [
        route("GET", "", "/x"),
        route("POST PUT", "", "/{one}"),
        with(route("PATCH", "", "/x"), &[header("x-beta", ValueCondition::Present)]),
        route("DELETE", "other.example", "/x"),
    ];
    for (method, host, path, expected) in [
        ("OPTIONS", "a", "/x", "allow GET, POST, PUT"),
        ("OPTIONS", "other.example", "/x", "allow DELETE, GET, POST, PUT"),
        ("PUT", "a", "/x", "1 one=x"),
        ("GET", "a", "/y", "allow POST, PUT"),
        ("GET", "a", "/y/z", "nothing"),
    ] {
        assert_eq!(found(&routes, method, host, path), expected, "{method} {host}{path}");
    }
}

#[test]
fn conditions_look_at_headers_cookies_and_the_query() {
    let condition = |source, test| Condition { source, test };
    let regex = |text| ValueCondition::Matches(ValuePattern::new(text).unwrap());
    let cookie = || ConditionSource::Cookie("side".to_owned());
    let query = || ConditionSource::Query("a b".to_owned());
    for (condition, target, lines, expected) in [
        (header("x-a", one_of(&["1"])), "/", &[("x-a", "2"), ("x-a", "1")][..], true),
        (header("x-a", one_of(&["1"])), "/", &[("x-a", "11")], false),
        (header("x-a", regex("1|2")), "/", &[("x-a", "12")], false),
        (header("x-a", regex("[12]+")), "/", &[("x-a", "12")], true),
        (header("x-a", ValueCondition::Absent), "/", &[("x-a", "")], false),
        (header("x-a", ValueCondition::Absent), "/", &[("x-b", "")], true),
        (condition(cookie(), one_of(&["b"])), "/", &[("cookie", "a=1; side=b;c")], true),
        (condition(cookie(), one_of(&["b"])), "/", &[("cookie", "a=1; xside=b; side =b=")], false),
        (condition(cookie(), ValueCondition::Present), "/", &[("cookie", "a=1"), ("cookie", "side=")], true),
        (condition(query(), one_of(&["c d"])), "/?x&a+b=c%20d", &[], true),
        (condition(query(), one_of(&["c d"])), "/?a+b=c", &[], false),
        (condition(query(), ValueCondition::Absent), "/?", &[], true),
        (
            condition(ConditionSource::Grpc, ValueCondition::Present),
            "/",
            &[("content-type", "application/grpc+proto")],
            true,
        ),
        (
            condition(ConditionSource::Grpc, ValueCondition::Present),
            "/",
            &[("content-type", "application/json")],
            false,
        ),
    ] {
        let shown = format!("{condition} {target} {lines:?}");
        let routes = [with(route("", "", "/"), &[condition])];
        let answer = found_with(&routes, "GET", "a", target, &headers(lines));
        assert_eq!(answer, if expected { "0" } else { "nothing" }, "{shown}");
    }
}

#[test]
fn routes_that_match_the_same_or_nothing_are_reported() {
    let regex = |text| ValueCondition::Matches(ValuePattern::new(text).unwrap());
    let routes = [
        route("GET", "", "/x/{a}"),
        route("PUT GET", "", "/x/{b}"),
        with(route("", "", "/y"), &[header("x-a", ValueCondition::Present)]),
        with(route("", "", "/y"), &[header("x-a", one_of(&["1"]))]),
        with(route("", "", "/y"), &[header("x-b", one_of(&["1"]))]),
        with(route("", "a b", "/z"), &[header("x-a", regex("1."))]),
        with(route("", "a b c", "/z"), &[header("x-a", one_of(&["11"]))]),
        with(route("GET", "b", "/z"), &[header("x-a", one_of(&["12"]))]),
        with(route("", "b a", "/z"), &[header("x-a", one_of(&["13", "12"]))]),
    ];
    let expected = [
        RouteConflict::Duplicate { route: 1, earlier: 0, method: Some(Method::GET) },
        RouteConflict::Unreachable { route: 3, covered_by: 2 },
        RouteConflict::Unreachable { route: 8, covered_by: 5 },
    ];
    assert_eq!(conflicts(&routes), expected);
}

#[test]
fn routes_may_call_the_same_place_by_different_names() {
    let routes = [
        route("GET", "", "/a/{x}"),
        route("POST", "", "/a/{y}"),
        route("", "", "/a/{user}/b"),
        route("", "", "/a/{group}/c/{*rest}"),
    ];
    for (method, path, expected) in [
        ("GET", "/a/1", "0 x=1"),
        ("POST", "/a/1", "1 y=1"),
        ("PUT", "/a/1", "allow GET, POST"),
        ("GET", "/a/1/b", "2 user=1"),
        ("GET", "/a/1/c/d/e", "3 group=1 rest=d/e"),
    ] {
        assert_eq!(found(&routes, method, "a", path), expected, "{method} {path}");
    }
}

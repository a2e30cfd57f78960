//! Values of the keys of routing, of spreading calls and of hosts that change.

use http::{HeaderName, HeaderValue, Method};
use weir_base::Nanos;
use weir_gate::config::{
    Condition, ConditionSource, FixedReply, HealthProbe, HostMatch, KeySource, LocalResponse, MirrorRule, QueryRule,
    RedirectRule, RequestLimits, ResolveInterval, RouteAction, ValueCondition, ValuePattern, WeightedUpstream,
};
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierComparison, OutlierRule};
use weir_retry::policy::BudgetRule;

use super::parsed;

#[test]
fn matches_are_read() {
    let config = parsed(
        r#"
        upstreams.a.urls = ["http://h"]
        [[routes]]
        match = { path = "/v{n:[0-9]+}/{*rest}", host = ["Api.Example.", "*.example"], headers = { X-A = "1", x-b = true }, cookies = { c = false }, query = { q = ["1", "2"], r = { regex = "a|b" } } }
        max_body = "1MiB"
        max_head = "16KiB"
        max_headers = 50
        rewrite = { add = { x-a = "b" }, response_add = { x-c = "d" } }
        [[routes]]
        match = { grpc = "echo.Echo" }
        [[routes]]
        match = { grpc = "echo.Echo/Say" }
        "#,
    );
    let [route, service, method] = &config.routes[..] else { panic!("{config:?}") };
    assert_eq!(route.path, "/v{n:[0-9]+}/{*rest}");
    assert_eq!(route.hosts, [HostMatch::Exact("api.example".into()), HostMatch::Suffix(".example".into())]);
    let header = |name| ConditionSource::Header(HeaderName::from_static(name));
    let one_of = |values: &[&str]| ValueCondition::OneOf(values.iter().map(ToString::to_string).collect());
    let conditions = [
        (header("x-a"), one_of(&["1"])),
        (header("x-b"), ValueCondition::Present),
        (ConditionSource::Cookie("c".into()), ValueCondition::Absent),
        (ConditionSource::Query("q".into()), one_of(&["1", "2"])),
        (ConditionSource::Query("r".into()), ValueCondition::Matches(ValuePattern::new("a|b").unwrap())),
    ];
    assert_eq!(route.conditions, conditions.map(|(source, test)| Condition { source, test }));
    let limits = RequestLimits { max_body_bytes: Some(1 << 20), max_head_bytes: Some(16 << 10), max_headers: Some(50) };
    assert_eq!(route.limits, limits);
    let pair = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    assert_eq!((&route.rewrite.add, &route.rewrite.response_add), (&vec![pair("x-a", "b")], &vec![pair("x-c", "d")]));
    let grpc = Condition { source: ConditionSource::Grpc, test: ValueCondition::Present };
    for (route, path) in [(service, "/echo.Echo/{method}"), (method, "/echo.Echo/Say")] {
        assert_eq!((route.path.as_str(), &route.methods[..]), (path, &[Method::POST][..]));
        assert_eq!(route.conditions, std::slice::from_ref(&grpc));
    }
    assert_eq!(service.limits, RequestLimits::default());
}

#[test]
fn routes_without_an_upstream_are_read() {
    let config = parsed(
        r#"
        [[routes]]
        match = { path = "/a" }
        respond = { status = 201, content_type = "text/html", body = "<p>", headers = { X-A = "b" } }
        [[routes]]
        match = { path = "/b/{c}" }
        redirect = { status = 308, scheme = "https", host = "h:1", path = "/{c}", query = "drop" }
        [[routes]]
        match = { path = "/c" }
        redirect = { path = "/d" }
        "#,
    );
    let response =
        LocalResponse { status: 201, content_type: HeaderValue::from_static("text/html"), body: "<p>".into() };
    let headers = vec![(HeaderName::from_static("x-a"), HeaderValue::from_static("b"))];
    assert_eq!(config.routes[0].action, RouteAction::Respond(FixedReply { response, headers }));
    let full = RedirectRule {
        status: 308,
        scheme: Some("https".into()),
        host: Some("h:1".into()),
        path: Some("/{c}".into()),
        query: QueryRule::Drop,
    };
    assert_eq!(config.routes[1].action, RouteAction::Redirect(full));
    let short = RedirectRule { status: 307, scheme: None, host: None, path: Some("/d".into()), query: QueryRule::Keep };
    assert_eq!(config.routes[2].action, RouteAction::Redirect(short));
    assert!(config.routes.iter().all(|route| route.upstreams.is_empty()));
    assert_eq!(config.warnings, []);
}

#[test]
fn traffic_is_read() {
    let config = parsed(
        r#"
        upstreams.a.urls = ["http://h"]
        upstreams.b.urls = ["http://i"]
        upstreams.c.urls = ["http://j"]
        [[routes]]
        match = { path = "/a" }
        upstream = [{ name = "a", weight = 95 }, { name = "b", weight = 5 }]
        sticky = { cookie = "side", max_age = "1h" }
        mirror = { upstream = "c", fraction = 0.1, deadline = "5s", max_in_flight = 7, max_body = "1KiB", budget = "10% + 5/1s" }
        [[routes]]
        match = { path = "/b" }
        upstream = [{ name = "b", weight = 1 }, { name = "a", weight = 0 }]
        sticky = { header = "X-User" }
        mirror = { upstream = "c" }
        "#,
    );
    let [first, second] = &config.routes[..] else { panic!("{config:?}") };
    let upstream = |name: &str, weight| WeightedUpstream { name: name.into(), weight };
    assert_eq!(first.upstreams, [upstream("a", 95), upstream("b", 5)]);
    let sticky = KeySource::Cookie { name: "side".into(), issue: Some(Nanos::from_secs(3600)) };
    assert_eq!(first.sticky, Some(sticky));
    let mirror = MirrorRule {
        upstream: "c".into(),
        fraction: 0.1,
        deadline: Nanos::from_secs(5),
        max_in_flight: 7,
        max_body_bytes: 1024,
        budget: Some(BudgetRule { fraction: 0.1, min_per_window: 5, window: Nanos::SECOND }),
    };
    assert_eq!(first.mirror, Some(mirror));
    assert_eq!(second.sticky, Some(KeySource::Header(HeaderName::from_static("x-user"))));
    let mirror = MirrorRule {
        upstream: "c".into(),
        fraction: 1.0,
        deadline: Nanos::from_secs(10),
        max_in_flight: 100,
        max_body_bytes: 64 << 10,
        budget: None,
    };
    assert_eq!(second.mirror, Some(mirror));
    assert_eq!(config.warnings, []);
}

#[test]
fn hosts_that_change_are_read() {
    let config = parsed(
        r#"
        [upstreams.a]
        urls = ["http://h", "http://i"]
        balance = "consistent-hash"
        hash_by = { cookie = "session" }
        max_load = 1.5
        resolve = "30s"
        slow_start = "1m"
        max_connection_requests = 1000
        max_connection_age = "1h"
        health = { failure_fraction = 0.3, latency_factor = 2.5, window = "20s", min_samples = 30, panic_threshold = 0.4, check = { grpc = "" } }
        [upstreams.b]
        urls = ["HTTPS://_http._tcp.api.example/"]
        resolve = "ttl"
        resolver = ["10.0.0.2", "10.0.0.2:8600", "::1", "[::1]", "[::1]:5353"]
        balance = "consistent-hash"
        hash_by = "address"
        health = { latency_factor = 3, check = { tcp = true } }
        [[routes]]
        match = { path = "/" }
        upstream = "a"
        [[routes]]
        match = { path = "/b" }
        upstream = "b"
        "#,
    );
    let [first, second] = &config.upstreams[..] else { panic!("{config:?}") };
    assert_eq!(first.balance, BalancePolicy::ConsistentHash { max_load_percent: 150 });
    assert_eq!(first.hash_by, Some(KeySource::Cookie { name: "session".into(), issue: None }));
    assert_eq!(first.resolve, Some(ResolveInterval::Fixed(Nanos::from_secs(30))));
    assert_eq!(first.slow_start, Some(Nanos::from_secs(60)));
    assert_eq!(second.resolve, Some(ResolveInterval::Ttl));
    let servers: Vec<String> = second.resolver.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["10.0.0.2:53", "10.0.0.2:8600", "[::1]:53", "[::1]:53", "[::1]:5353"]);
    assert_eq!(second.hosts[0].url, "https://_http._tcp.api.example");
    assert_eq!(first.max_connection_requests, Some(1000));
    assert_eq!(first.max_connection_age, Some(Nanos::from_secs(3600)));
    let comparison = |window, min_samples, failure_fraction, latency_factor| {
        Some(OutlierComparison { window: Nanos::from_secs(window), min_samples, failure_fraction, latency_factor })
    };
    let rule = OutlierRule {
        comparison: comparison(20, 30, Some(0.3), Some(2.5)),
        panic_threshold: Some(0.4),
        ..OutlierRule::default()
    };
    assert_eq!(first.health, rule);
    assert_eq!(first.health_check.as_ref().unwrap().probe, HealthProbe::Grpc { service: String::new() });
    assert_eq!(second.balance, BalancePolicy::ConsistentHash { max_load_percent: 125 });
    assert_eq!(second.hash_by, Some(KeySource::Address));
    assert_eq!(second.health.comparison, comparison(10, 50, None, Some(3.0)));
    assert_eq!(second.health_check.as_ref().unwrap().probe, HealthProbe::Tcp);
    assert_eq!(config.warnings, []);
}

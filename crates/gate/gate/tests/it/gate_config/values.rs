//! Values of all keys, and their defaults.

use std::fs;

use http::{HeaderName, HeaderValue, Method};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_call::PermitPool;
use weir_gate::config::{
    self, CallerFrom, CertificateField, DeadlineFrom, DeadlineLocation, DistributedLimitConfig, HealthCheck,
    HealthProbe, HostConfig, HostMatch, HostRule, LocalResponse, Network, PriorityRule, Proxies, QueryRule,
    ServerTlsOptions,
};
use weir_net::client::{Http2Limits, Protocol};
use weir_net::path::PathRule;
use weir_resilience::admission::{AdmissionConfig, ConcurrencyLimitConfig, Priority, adaptive_limit};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_resilience::ratelimit::per_caller::CallerRule;
use weir_resilience::upstream::circuit_breaker::BreakerRule;
use weir_resilience::upstream::client_throttle::ThrottleRule;
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};
use weir_retry::backoff::Backoff;
use weir_retry::deadline::DeadlineFormat;
use weir_retry::policy::{BudgetRule, RetryPolicy, Retryable, RetryableMethodClass};
use weir_server::ListenAddress;
use weir_server::tls::{CertificateFiles, ClientAuth, MinTlsVersion};

use super::{document, parsed, write_certificates};

#[test]
fn a_minimal_configuration_has_defaults() {
    let config = parsed("upstreams.a.urls = [\"http://h\"]\n[[routes]]\nmatch = { path = \"/{*rest}\" }");
    let (upstream, route) = (&config.upstreams[0], &config.routes[0]);
    assert_eq!((&config.listen, config.workers, &config.listeners[..], &config.admin), (&None, None, &[][..], &None));
    assert_eq!((&*config.trusted_proxies, config.path_rule), (&Proxies::default(), PathRule::default()));
    let pages = config.builtin_paths();
    assert_eq!((pages.metrics.as_str(), pages.health.as_str()), ("/metrics", "/healthz"));
    assert_eq!(upstream.hosts, [HostConfig { url: "http://h".into(), socket: None, weight: 1 }]);
    assert_eq!((upstream.protocol, upstream.balance), (Protocol::Auto, BalancePolicy::RoundRobin));
    assert_eq!((upstream.connect_timeout, upstream.idle_timeout), (Nanos::from_secs(5), Nanos::from_secs(60)));
    assert_eq!(upstream.stall_timeout, Nanos::from_secs(60));
    assert_eq!((upstream.max_connections, &upstream.admission), (None, &Some(AdmissionConfig::default())));
    assert_eq!(upstream.http2, Http2Limits::default());
    assert_eq!((upstream.breaker, upstream.throttle), (None, Some(ThrottleRule::default())));
    assert_eq!((upstream.health, &upstream.health_check), (OutlierRule::default(), &None));
    assert_eq!((route.upstreams[0].name.as_str(), route.policy.name.as_str()), ("a", "default"));
    assert_eq!(route.policy.policy, Policy::default());
    assert_eq!((route.policy.max_buffer_bytes, route.policy.success.max_body_bytes), (65536, 1 << 20));
    let known = |name, form| (HeaderName::from_static(name), form);
    let headers =
        [known("grpc-timeout", DeadlineFormat::Grpc), known("x-envoy-expected-rq-timeout-ms", DeadlineFormat::Millis)];
    assert_eq!((&route.policy.deadlines_in[..], &route.policy.deadlines_out[..]), (&headers[..], &headers[..]));
    assert_eq!(config.warnings, []);
}

#[test]
fn upstreams_are_read() {
    let config = parsed(
        r#"
        [upstreams.backend]
        urls = ["http://127.0.0.1:9001/", { url = "https://[::1]:9002", weight = 2 }, "unix:/run/app.sock"]
        protocol = "http2"
        balance = "least-in-flight"
        connect_timeout = "1s"
        stall_timeout = "20s"
        max_connections = 100
        streams = 50
        h2_window = 65536
        max_in_flight = 200
        max_queue = 1000
        idle_timeout = "90s"
        tls = { insecure = true, server_name = "x" }
        health = { consecutive_failures = 3, ejection_time = "1m", max_ejected = 1, check = { path = "/healthz?a", interval = "9s", status = 204 } }
        [[routes]]
        match = { path = "/" }
        "#,
    );
    let upstream = &config.upstreams[0];
    let host = |url: &str, weight, socket: Option<&str>| HostConfig {
        url: url.into(),
        weight,
        socket: socket.map(Into::into),
    };
    let hosts = [
        host("http://127.0.0.1:9001", 1, None),
        host("https://[::1]:9002", 2, None),
        host("http://localhost", 1, Some("/run/app.sock")),
    ];
    assert_eq!(upstream.hosts, hosts);
    assert_eq!((upstream.protocol, upstream.balance), (Protocol::Http2, BalancePolicy::LeastInFlight));
    assert_eq!((upstream.connect_timeout, upstream.idle_timeout), (Nanos::SECOND, Nanos::from_secs(90)));
    assert_eq!(upstream.stall_timeout, Nanos::from_secs(20));
    assert_eq!((upstream.max_connections, &upstream.admission), (Some(100), &Some(PermitPool::fixed(200, 1000))));
    assert_eq!(upstream.http2, Http2Limits { streams: Some(50), window_bytes: Some(65536) });
    assert_eq!((upstream.tls.insecure, upstream.server_name.as_deref()), (true, Some("x")));
    assert_eq!(
        upstream.health,
        OutlierRule {
            consecutive_failures: 3,
            base_ejection: Nanos::from_secs(60),
            max_ejected_fraction: 1.0,
            ..OutlierRule::default()
        }
    );
    let check = HealthCheck {
        probe: HealthProbe::Http { path: "/healthz?a".into(), statuses: vec![204..=204] },
        interval: Nanos::from_secs(9),
        timeout: Nanos::SECOND,
    };
    assert_eq!(upstream.health_check, Some(check));
}

#[test]
fn overload_protection_is_read() {
    let config = parsed(
        r#"
        [upstreams.adaptive]
        urls = ["http://127.0.0.1:1"]
        max_queue = 50
        concurrency_limit = { initial = 20, min = 5, max = 200, max_queue_wait = "300ms", max_queue_wait_overloaded = "2ms" }
        breaker = { window = "20s", min_samples = 5, failure_threshold = 0.5, open_time = "2s", max_open_time = "1m", probes = 2 }
        throttle = { k = 1.5, window = "10s", max_throttled = 0.8, min_samples = 100 }
        [upstreams.fixed]
        urls = ["http://127.0.0.1:2"]
        max_in_flight = 3
        concurrency_limit = { max_queue_wait = "1s" }
        throttle = "none"
        [upstreams.none]
        urls = ["http://127.0.0.1:3"]
        concurrency_limit = "none"
        [[routes]]
        match = { path = "/{tenant}" }
        upstream = "adaptive"
        max_in_flight = 10
        max_queue = 20
        priority_from = { header = "x-priority", values = { gold = "critical", bulk = "low" }, default = "high" }
        caller = { path = "tenant" }
        rate_limit = { rate = "100/1s", burst = 200, max_callers = 1000 }
        [[routes]]
        match = { path = "/fixed" }
        upstream = "fixed"
        priority = "low"
        caller = { header = "x-api-key" }
        rate_limit = "5/1m"
        [[routes]]
        match = { path = "/none" }
        upstream = "none"
        caller = "address"
        priority_from = { header = "x-priority" }
        "#,
    );
    let ms = Nanos::from_millis;
    let [adaptive, fixed, none] = &config.upstreams[..] else { panic!("{config:?}") };
    let options = adaptive_limit::Options { initial: 20, min: 5, max: 200 };
    let terms = AdmissionConfig {
        limit: ConcurrencyLimitConfig::Adaptive(options),
        max_queue_wait: ms(300),
        overload_queue_wait: ms(2),
        max_queued: 50,
    };
    assert_eq!(adaptive.admission, Some(terms));
    let rule = BreakerRule {
        window: Nanos::from_secs(20),
        min_calls: 5,
        failure_fraction: 0.5,
        open_time: Nanos::from_secs(2),
        max_open_time: Nanos::from_secs(60),
        probes: 2,
    };
    assert_eq!(adaptive.breaker, Some(rule));
    let rule = ThrottleRule { k: 1.5, window: Nanos::from_secs(10), max_fraction: 0.8, min_requests: 100 };
    assert_eq!(adaptive.throttle, Some(rule));
    let terms =
        AdmissionConfig { max_queue_wait: Nanos::SECOND, overload_queue_wait: ms(5), ..PermitPool::fixed(3, 0) };
    assert_eq!((&fixed.admission, fixed.throttle), (&Some(terms), None));
    assert_eq!(none.admission, None);
    let [first, second, third] = &config.routes[..] else { panic!("{config:?}") };
    assert_eq!((&first.admission, &second.admission), (&Some(PermitPool::fixed(10, 20)), &None));
    let values = vec![("gold".to_owned(), Priority::Critical), ("bulk".to_owned(), Priority::Low)];
    let header = Some(HeaderName::from_static("x-priority"));
    assert_eq!(
        first.priority,
        PriorityRule { header: header.clone(), certificate: None, values, default: Priority::High }
    );
    assert_eq!(first.caller, Some(CallerFrom::Path("tenant".into())));
    assert_eq!(first.rate, Some(CallerRule { burst: 200, entries: 1000, ..CallerRule::new(100, Nanos::SECOND) }));
    assert_eq!(second.priority, PriorityRule { default: Priority::Low, ..PriorityRule::default() });
    assert_eq!(second.caller, Some(CallerFrom::Header(HeaderName::from_static("x-api-key"))));
    assert_eq!(second.rate, Some(CallerRule::new(5, Nanos::from_secs(60))));
    let names: Vec<&str> = third.priority.values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, third.caller.as_ref()), (vec!["low", "normal", "high", "critical"], Some(&CallerFrom::Address)));
}

#[test]
fn a_cluster_is_read() {
    let cluster = |text: &str| {
        parsed(&document("route", &format!("caller = \"address\"\nrate_limit = \"5/1s\"\n[cluster]\n{text}")))
            .distributed_limits
    };
    let plain = cluster("url = \"redis://h\"").unwrap();
    assert_eq!((plain.redis.redacted(), plain.name.as_str()), ("redis://h", "gate"));
    assert_eq!((plain.lease, plain.gates), (Nanos::from_secs(2), 1));
    let all = "url = \"redis://me:secret@h/2\"\nname = \"orders\"\nlease = \"500ms\"\ngates = 4";
    assert_eq!(
        cluster(all),
        Some(DistributedLimitConfig::parse("redis://me:secret@h/2?name=orders&lease=500ms&gates=4").unwrap())
    );
    assert_ne!(cluster(all), cluster("url = \"redis://me:other@h/2\""));
    assert_eq!(parsed(&document("", "")).distributed_limits, None);
}

#[test]
fn policies_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("order.schema.json"), r#"{"type": "object"}"#).unwrap();
    let text = document(
        "policy",
        r#"
        deadline = "1s"
        attempt_timeout = "400ms"
        hedge = [{ after = "300ms", attempts = 2 }, { after = "p95", on_failure = false }, {}]
        success = { status = "200-299,304", schema = "order.schema.json", headers = { "X-Ok" = "yes" }, max_body = "2MB" }
        retries = { times = 2, on = ["connect", "closed", "5xx", 429], backoff = "10ms..2s", retry_after = false }
        budget = { fraction = 0.5, min_per_s = 0.3, window = "10s" }
        retry_methods = "idempotent"
        buffer = "1KiB"
        deadline_headers = { in = [{ name = "X-Budget", format = "s" }, "x-request-timeout-ms"], out = [] }
        "#,
    );
    let config = config::parse(&text, folder.path()).unwrap();
    let stage = |after, on_failure, attempts| HedgeStage { after, on_failure, attempts };
    let read = &config.routes[1].policy;
    let policy = Policy {
        deadline: Nanos::SECOND,
        attempt_timeout: Nanos::from_millis(400),
        stages: vec![
            stage(StageTrigger::Time(Nanos::from_millis(300)), true, 2),
            stage(StageTrigger::Quantile(0.95), false, 1),
            stage(StageTrigger::Failure, true, 1),
        ],
        retry: RetryPolicy {
            max_retries: 2,
            on: Retryable {
                kinds: vec![FailureKind::Connect, FailureKind::Closed],
                statuses: vec![500..=599, 429..=429],
                ..Retryable::default()
            },
            backoff: Backoff { min: Nanos::from_millis(10), max: Nanos::from_secs(2) },
            honor_retry_after: false,
        },
        retryable_methods: RetryableMethodClass::Idempotent,
        budget: Some(BudgetRule { fraction: 0.5, min_per_window: 3, window: Nanos::from_secs(10) }),
    };
    assert_eq!((read.name.as_str(), &read.policy, read.max_buffer_bytes), ("quick", &policy, 1024));
    let success = &read.success;
    assert_eq!((&success.statuses, success.json), (&vec![200..=299, 304..=304], true));
    assert_eq!((&success.schema, success.max_body_bytes), (&Some(serde_json::json!({"type": "object"})), 2_000_000));
    assert_eq!(success.headers, [(HeaderName::from_static("x-ok"), HeaderValue::from_static("yes"))]);
    let known = |name, form| (HeaderName::from_static(name), form);
    assert_eq!(
        read.deadlines_in,
        [known("x-budget", DeadlineFormat::Seconds), known("x-request-timeout-ms", DeadlineFormat::Millis)]
    );
    assert_eq!(read.deadlines_out, []);
}

#[test]
fn policies_have_defaults() {
    let policy = |text: &str| parsed(&document("policy", text)).routes[1].policy.policy.clone();
    assert_eq!(policy("retries = 2").retry, RetryPolicy { max_retries: 2, ..RetryPolicy::default() });
    assert_eq!(policy("retries = { times = 2 }").retry, RetryPolicy { max_retries: 2, ..RetryPolicy::default() });
    assert_eq!(policy("budget = \"none\"").budget, None);
    assert_eq!(policy("budget = \"5% + 250/10s\"").budget, Some(BudgetRule::default()));
    assert_eq!(policy("budget = {}").budget, Some(BudgetRule::default()));
    assert_eq!(policy("").budget, Some(BudgetRule::default()));
}

#[test]
fn routes_are_read() {
    let config = parsed(
        r#"
        upstreams.a.urls = ["http://h"]
        [[routes]]
        match = { path = "/api/{user}/{*rest}", methods = ["GET", "POST"], host = "Api.Example" }
        policy = { retries = 1 }
        rewrite = { path = "/v2/{rest}", query = "a={user}", host = "b.example", set = { "X-A" = "b" }, remove = ["Cookie"], response_set = { server = "weir" }, response_remove = ["x-b"] }
        deadline_from = { path = "user", unit = "s", above = 3, too_low = { status = 422, content_type = "application/json", body = "{}" } }
        response = { merge = { a = [1, 2.5, true, "x"], b = { c = 0x10 } }, deadline_exceeded = { body = "late" }, failed = { status = 204 }, rejected = { body = "later" } }
        [[routes]]
        match = { path = "/{*rest}" }
        rewrite = { query = "drop", host = "upstream" }
        deadline_from = { query = "timeout" }
        "#,
    );
    let route = &config.routes[0];
    assert_eq!(
        (route.path.as_str(), &route.hosts[..]),
        ("/api/{user}/{*rest}", &[HostMatch::Exact("api.example".into())][..])
    );
    assert_eq!(
        (&route.methods[..], route.policy.name.as_str()),
        (&[Method::GET, Method::POST][..], "routes[0].policy")
    );
    let rewrite = &route.rewrite;
    assert_eq!(rewrite.path.as_deref(), Some("/v2/{rest}"));
    assert_eq!(rewrite.query, QueryRule::Set("a={user}".into()));
    assert_eq!(rewrite.host, HostRule::Set(HeaderValue::from_static("b.example")));
    let pair = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    assert_eq!((&rewrite.set[..], &rewrite.response_set[..]), (&[pair("x-a", "b")][..], &[pair("server", "weir")][..]));
    assert_eq!(
        (&rewrite.remove[0], &rewrite.response_remove[0]),
        (&http::header::COOKIE, &HeaderName::from_static("x-b"))
    );
    let own = |status, kind, body: &'static str| LocalResponse {
        status,
        content_type: HeaderValue::from_static(kind),
        body: body.into(),
    };
    let plain = "text/plain; charset=utf-8";
    let deadline = DeadlineFrom {
        location: DeadlineLocation::Path("user".into()),
        unit: Nanos::SECOND,
        above: 3,
        invalid_response: own(400, plain, "user must be a whole number of seconds\n"),
        too_low_response: own(422, "application/json", "{}"),
    };
    assert_eq!(route.deadline_from, Some(deadline));
    let merge = [("a".into(), serde_json::json!([1, 2.5, true, "x"])), ("b".into(), serde_json::json!({"c": 16}))];
    assert_eq!(route.response.merge, merge);
    assert_eq!(
        (&route.response.deadline_exceeded, &route.response.failed),
        (&Some(own(504, plain, "late")), &Some(own(204, plain, "")))
    );
    assert_eq!(route.response.rejected, Some(own(503, plain, "later")));

    let route = &config.routes[1];
    assert_eq!((&route.rewrite.query, &route.rewrite.host), (&QueryRule::Drop, &HostRule::Upstream));
    let deadline = DeadlineFrom {
        location: DeadlineLocation::Query("timeout".into()),
        unit: Nanos::MILLI,
        above: 0,
        invalid_response: own(400, plain, "timeout must be a whole number of milliseconds\n"),
        too_low_response: own(400, plain, "timeout must be above 0 milliseconds\n"),
    };
    assert_eq!(route.deadline_from, Some(deadline));
}

#[test]
fn listeners_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write_certificates(folder.path());
    let text = r#"
        admin = "unix:admin.sock"
        [[listeners]]
        name = "public"
        address = "0.0.0.0:8443"
        proxy_protocol = ["10.0.0.0/8"]
        tls = { certificates = [{ cert = "site.pem", key = "site-key.pem", ocsp = "site.ocsp" }], client_ca = "clients.pem", client_auth = "optional", min_version = "1.3" }
        [[listeners]]
        address = "systemd:http"
        redirect_to_https = true
        max_connections = 5000
        max_connections_per_address = 100
        [upstreams.a]
        urls = ["http://h"]
        [[routes]]
        match = { path = "/{*rest}" }
        listeners = ["public"]
        caller = { certificate = "san" }
        priority_from = { certificate = "common_name", values = { billing = "critical" } }
    "#;
    let config = weir_gate::config::parse(text, folder.path()).unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(config.admin, Some(ListenAddress::Unix(folder.path().join("admin.sock"))));
    // With an admin listener nothing of it is public.
    assert_eq!((config.builtin_paths().metrics, config.builtin_paths().health), (String::new(), String::new()));
    let file = |name: &str| folder.path().join(name);
    let [public, other] = &config.listeners[..] else { panic!("{:?}", config.listeners) };
    assert_eq!((public.name.as_str(), &public.address), ("public", &ListenAddress::Tcp("0.0.0.0".into(), 8443)));
    assert_eq!(public.proxy_protocol, Proxies::new(vec![Network::parse("10.0.0.0/8").unwrap()]));
    let files = CertificateFiles { cert: file("site.pem"), key: file("site-key.pem"), ocsp: Some(file("site.ocsp")) };
    let tls = ServerTlsOptions {
        certificates: vec![files],
        client_ca: Some(file("clients.pem")),
        client_auth: ClientAuth::Optional,
        min_version: MinTlsVersion::Tls13,
    };
    assert_eq!((public.tls.as_ref(), public.redirect_to_https), (Some(&tls), None));
    assert_eq!((other.name.as_str(), &other.address), ("systemd:http", &ListenAddress::Systemd("http".into())));
    assert_eq!((other.tls.as_ref(), other.redirect_to_https), (None, Some(443)));
    assert_eq!((other.max_connections, other.max_connections_per_address), (Some(5000), Some(100)));
    let route = &config.routes[0];
    assert_eq!(
        (&route.listeners[..], &route.caller),
        (&["public".to_owned()][..], &Some(CallerFrom::Certificate(CertificateField::AlternativeName)))
    );
    let PriorityRule { header, certificate, values, default } = &route.priority;
    assert_eq!((header, certificate, default), (&None, &Some(CertificateField::CommonName), &Priority::Normal));
    assert_eq!(values[..], [("billing".to_owned(), Priority::Critical)]);
}

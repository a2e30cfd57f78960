//! Configurations of the command line: `--demo` and flags.

use http::Method;
use weir_base::Nanos;
use weir_gate::config::{self, DeadlineLocation, FlagConfig, QueryRule};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};

#[test]
fn the_demo_has_its_routes_and_responses() {
    let config = config::smart("http://127.0.0.1:9001").unwrap();
    assert_eq!(config.upstreams[0].hosts[0].url, "http://127.0.0.1:9001");
    let places = [DeadlineLocation::Path("timeout".into()), DeadlineLocation::Query("timeout".into())];
    let paths = ["/api/smart/{timeout}", "/api/smart"];
    assert_eq!(config.routes.len(), 2);
    for ((route, place), path) in config.routes.iter().zip(places).zip(paths) {
        assert_eq!((route.path.as_str(), &route.methods[..]), (path, &[Method::GET][..]));
        assert_eq!((route.rewrite.path.as_deref(), &route.rewrite.query), (Some("/api/work"), &QueryRule::Drop));
        let stage = HedgeStage { after: StageTrigger::Time(Nanos::from_millis(300)), on_failure: true, attempts: 2 };
        assert_eq!(route.policy.policy, Policy { stages: vec![stage], budget: None, ..Policy::default() });
        assert_eq!((&route.policy.success.statuses, route.policy.success.json), (&vec![200..=200], true));
        let deadline = route.deadline_from.as_ref().unwrap();
        assert_eq!((&deadline.location, deadline.unit, deadline.above), (&place, Nanos::MILLI, 300));
        assert_eq!(deadline.invalid_response.body, r#"{"message":"Endpoint timeout parameter should be INTEGER"}"#);
        assert_eq!(deadline.too_low_response.body, r#"{"message":"Endpoint timeout parameter should be above 300"}"#);
        assert_eq!((deadline.invalid_response.status, deadline.too_low_response.status), (400, 400));
        let (late, failed) =
            (route.response.deadline_exceeded.as_ref().unwrap(), route.response.failed.as_ref().unwrap());
        assert_eq!((late.status, failed.status), (504, 502));
        assert_eq!(
            (&late.body[..], &failed.body[..]),
            (&br#"{"message":"ERROR"}"#[..], &br#"{"message":"ERROR"}"#[..])
        );
        let own = [&deadline.invalid_response, &deadline.too_low_response, late, failed];
        assert!(own.iter().all(|answer| answer.content_type == "application/json"));
        assert_eq!(route.response.merge, [("message".into(), "SUCCESS".into())]);
    }
    assert_eq!(config.warnings, []);
}

#[test]
fn the_demo_sends_to_the_path_of_its_url() {
    let path = |url: &str| config::smart(url).map(|config| config.routes[0].rewrite.path.clone().unwrap());
    assert_eq!(path("https://h:1/"), Ok("/api/work".into()));
    assert_eq!(path("http://h:1/a/b"), Ok("/a/b".into()));
    assert_eq!(path("unix:/run/\"app\".sock"), Ok("/api/work".into()));
    for wrong in ["", "h:1", "ftp://h", "http://", "http://h?a", "http://h/a?b", "http://h/{a}", "http://h/a b"] {
        assert!(path(wrong).is_err(), "{wrong}");
    }
    let told = path("http://me:secret@h/{a}").unwrap_err();
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn flags_are_one_route() {
    let policy = Policy { deadline: Nanos::SECOND, ..Policy::default() };
    let flags = |upstreams: &[&str]| FlagConfig {
        upstreams: upstreams.iter().map(ToString::to_string).collect(),
        policy: policy.clone(),
    };
    let config = config::from_flags(&flags(&["http://h:1", "https://h:2/"])).unwrap();
    let urls: Vec<&str> = config.upstreams[0].hosts.iter().map(|host| host.url.as_str()).collect();
    assert_eq!((config.upstreams[0].name.as_str(), urls), ("upstream", vec!["http://h:1", "https://h:2"]));
    let route = &config.routes[0];
    assert_eq!((route.path.as_str(), route.upstreams[0].name.as_str()), ("/{*rest}", "upstream"));
    assert_eq!(route.policy.policy, policy);
    let told = |upstreams: &[&str]| config::from_flags(&flags(upstreams)).unwrap_err();
    assert_eq!(told(&[]), "no upstream; give one as http://HOST:PORT");
    let remedy = r#"write it as "http://HOST:PORT", "https://HOST:PORT" or "unix:/PATH""#;
    assert_eq!(told(&["h:1"]), format!("'h:1' is not a URL; {remedy}"));
    assert_eq!(told(&["http://h"; 65]), "65 upstreams are too many; give 64 at most");
}

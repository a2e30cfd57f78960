//! Configurations of the gate: what they come to, and every complaint about them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;

use http::Method;
use weir::decide::Nanos;
use weir::decide::policy::{After, Stage};
use weir::gate::config::{self, Config};

fn parsed(text: &str) -> Config {
    config::parse(text, Path::new("/nowhere")).unwrap_or_else(|problems| {
        panic!("{}\n{text}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

#[test]
fn three_lines_are_a_gateway() {
    let config = parsed(
        r#"
        upstreams.backend.urls = ["http://127.0.0.1:9001"]
        [[routes]]
        match = { path = "/{*rest}" }
        "#,
    );
    assert_eq!(config.routes[0].upstream, "backend");
    assert_eq!(config.routes[0].policy.name, "default");
    assert_eq!((config.metrics.as_str(), config.health.as_str()), ("/metrics", "/healthz"));
    assert_eq!(config.warnings, []);
}

#[test]
fn all_of_it_is_read() {
    let config = parsed(
        r#"
        [upstreams.backend]
        urls = ["http://127.0.0.1:9001", { url = "http://[::1]:9002", weight = 2 }, "unix:/run/app.sock"]
        [policies.quick]
        deadline = "1s"
        stages = [{ after = "300ms", copies = 2 }, { after = "p95", on_failure = false }, {}]
        [[routes]]
        match = { path = "/api/{*rest}", methods = ["GET"], host = "Api.example" }
        policy = "quick"
        "#,
    );
    let hosts: Vec<_> = config.upstreams[0].hosts.iter().map(|host| (host.url.as_str(), host.weight)).collect();
    assert_eq!(hosts, [("http://127.0.0.1:9001", 1), ("http://[::1]:9002", 2), ("http://localhost", 1)]);
    let route = &config.routes[0];
    assert_eq!((route.host.as_deref(), route.methods.as_slice()), (Some("api.example"), &[Method::GET][..]));
    let stages = [
        Stage { after: After::Time(Nanos::from_millis(300)), on_failure: true, copies: 2 },
        Stage { after: After::Quantile(0.95), on_failure: false, copies: 1 },
        Stage { after: After::Failure, on_failure: true, copies: 1 },
    ];
    assert_eq!(route.policy.policy.stages, stages);
    assert_eq!(config.warnings, []);
}

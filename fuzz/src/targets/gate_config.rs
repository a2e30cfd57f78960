//! Configurations of the gateway: nothing panics, diagnostics are ordered and have positions in the text, and a valid
//! configuration meets the assumptions of its users.

use std::path::Path;

use weir_gate::config;

crate::target!(|text: &str| {
    // Relative to a folder that does not exist, so that few files are found.
    let lines = text.split('\n').count();
    match config::parse(text, Path::new("/nowhere")) {
        Ok(config) => {
            assert!(!config.routes.is_empty(), "no route");
            for upstream in &config.upstreams {
                assert!((1..=64).contains(&upstream.hosts.len()), "{upstream:?}");
            }
            for route in &config.routes {
                assert!(route.path.starts_with('/'), "{route:?}");
                let is_forward = route.action == config::RouteAction::Forward;
                assert_eq!(is_forward, !route.upstreams.is_empty(), "{route:?}");
                let mirror = route.mirror.iter().map(|mirror| &mirror.upstream);
                for name in route.upstreams.iter().map(|it| &it.name).chain(mirror) {
                    assert!(config.upstreams.iter().any(|upstream| upstream.name == *name), "{route:?}");
                }
                let policy = &route.policy.policy;
                let hedges: u32 = policy.stages.iter().map(|stage| stage.attempts).sum();
                assert!(1 + hedges + policy.retry.max_retries <= 64, "{policy:?}");
            }
            check(&config.warnings, lines);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "rejected without a diagnostic");
            check(&problems, lines);
        }
    }
});

fn check(problems: &[config::Diagnostic], lines: usize) {
    for problem in problems {
        let is_own = problem.file.is_empty();
        assert!((1..=lines).contains(&problem.line) || !is_own && problem.line > 0, "{problem}");
        assert!(problem.column > 0, "{problem}");
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(problems.windows(2).all(|pair| pair[0] <= pair[1]), "not in order");
}

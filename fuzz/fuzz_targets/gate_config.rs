//! Configurations of the gate: nothing panics, complaints point into the text and come in order, and a configuration
//! without complaint has what everything behind it takes for granted.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weir::gate::config;

fuzz_target!(|text: &str| {
    // There is nothing in it, so that files that a text names relative to it are not found.
    let lines = text.split('\n').count();
    match config::parse(text, Path::new("/nowhere")) {
        Ok(config) => {
            assert!(!config.routes.is_empty(), "no route");
            for upstream in &config.upstreams {
                assert!((1..=64).contains(&upstream.hosts.len()), "{upstream:?}");
            }
            for route in &config.routes {
                assert!(route.path.starts_with('/'), "{route:?}");
                assert!(config.upstreams.iter().any(|upstream| upstream.name == route.upstream), "{route:?}");
                let policy = &route.policy.policy;
                let copies: u32 = policy.stages.iter().map(|stage| stage.copies).sum();
                assert!(1 + copies + policy.retry.times <= 64, "{policy:?}");
            }
            check(&config.warnings, lines);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "wrong, and nobody says why");
            check(&problems, lines);
        }
    }
});

fn check(problems: &[config::Problem], lines: usize) {
    for problem in problems {
        assert!((1..=lines).contains(&problem.line) && problem.column > 0, "{problem}");
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(problems.windows(2).all(|pair| pair[0] <= pair[1]), "not in order");
}

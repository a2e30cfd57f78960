//! Scenarios on the pages: each plays in `weir serve shop` without a failure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;

use weir_testing::{Serving, Weir};

/// Pages with scenarios for the shop, relative to the root of the repository.
const PAGES: [&str; 8] = [
    "docs/start.md",
    "docs/scenarios.md",
    "docs/coming-from/artillery.md",
    "docs/coming-from/gatling.md",
    "docs/coming-from/jmeter.md",
    "docs/coming-from/k6.md",
    "docs/coming-from/locust.md",
    "docs/coming-from/wrk.md",
];

/// Blocks of a language on a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let begin = format!("```{language}\n");
    text.split(&begin).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn scenarios_of_the_pages_play_in_the_shop() {
    let shop = Serving::start(&["shop"]);
    let host = format!("host={}", shop.url);
    for page in PAGES {
        let scenarios = blocks(page, "hurl");
        assert!(!scenarios.is_empty(), "no scenario on {page}");
        for scenario in scenarios {
            let folder = Weir::new();
            folder.write(
                "page.hurl",
                scenario.replace("http://localhost:8080", &shop.url).replace("http://localhost:8081", &shop.url),
            );
            let variables = ["--variable", &host, "--variable", "user=ada", "--variable", "password=pw-ada"];
            let output = folder.run(&[&["run", "page.hurl"], &variables[..]].concat());
            assert_eq!(output.code, 0, "{page}:\n{scenario}\n{}{}", output.stdout, output.stderr);
        }
    }
}

#[test]
fn the_mix_of_the_page_plays_in_the_shop() {
    let shop = Serving::start(&["shop"]);
    let folder = Weir::new();
    let mixes = blocks("docs/scenarios/mix.md", "toml");
    folder.write("mix.toml", mixes[0].replace("http://localhost:8080", &shop.url));
    folder.write("shop.hurl", blocks("docs/scenarios.md", "hurl")[1].replace("{{host}}", ""));
    folder.write("browse.hurl", &blocks("docs/scenarios/mix.md", "hurl")[0]);
    folder.write("users.csv", "user,password\nada,pw-ada\ngrace,pw-grace\n");
    let load = ["load", "-s", "mix.toml", "--users", "4", "-n", "40", "--think", "0s", "--slo", "errors<=0%"];
    let output = folder.run(&load);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("shop: buy") && output.stdout.contains("browse: visit"), "{}", output.stdout);
}

//! Configurations of the gateway: the values of all keys, and all errors and warnings.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod diagnostics;
mod documentation;
mod flags;
mod routing;
mod values;

use std::fs;
use std::path::Path;

use weir_gate::config::{self, Config, Diagnostic};
use weir_testing::Authority;

fn lines(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn parsed(text: &str) -> Config {
    let parsed = config::parse(text, Path::new("/nowhere"));
    parsed.unwrap_or_else(|problems| panic!("{}\n{text}", lines(&problems).join("\n")))
}

/// Certificates `site.pem`, `wildcard.pem`, `clients.pem` with their keys, `site.ocsp`, and a key of another pair.
fn write_certificates(folder: &Path) {
    let authority = Authority::new();
    for name in ["site", "wildcard", "clients", "other"] {
        let pair = authority.issue("example.org");
        fs::write(folder.join(format!("{name}.pem")), pair.cert).unwrap();
        fs::write(folder.join(format!("{name}-key.pem")), pair.key).unwrap();
    }
    fs::write(folder.join("site.ocsp"), [0x30, 0]).unwrap();
}

/// A configuration, of which a case replaces one line.
fn document(slot: &str, text: &str) -> String {
    let line = |name: &str, usual: &str| if name == slot { text.to_owned() } else { usual.to_owned() };
    [
        line("top", ""),
        "[upstreams.backend]".to_owned(),
        line("upstream", r#"urls = ["http://127.0.0.1:9001"]"#),
        line("more", ""),
        "[policies.quick]".to_owned(),
        line("policy", ""),
        "[[routes]]".to_owned(),
        line("match", r#"match = { path = "/{*rest}" }"#),
        line("route", ""),
        "[[routes]]".to_owned(),
        r#"match = { path = "/quick" }"#.to_owned(),
        r#"policy = "quick""#.to_owned(),
        r#"upstream = "backend""#.to_owned(),
    ]
    .join("\n")
}

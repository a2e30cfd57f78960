//! Errors and warnings, compared with golden files.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use weir_gate::config::{self, RouteAction};

use super::{document, lines, parsed, write_certificates};

/// Compares a golden file in crates/gate/gate/tests/it/gate_config, or writes it with WEIR_BLESS=1. A paragraph is one case:
/// the line that is replaced and its text (` // ` ends a line), and the diagnostics that `diagnose` returns for the
/// configuration.
fn compare_golden(name: &str, diagnose: impl Fn(&str) -> Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/gate_config").join(name);
    let golden = fs::read_to_string(&path).unwrap();
    let mut cases = Vec::new();
    for paragraph in golden.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let head = paragraph.trim().lines().next().unwrap();
        let (slot, fragment) = head.split_once(':').unwrap();
        let diagnostics = diagnose(&document(slot, &fragment.trim().replace(" // ", "\n")));
        assert!(!diagnostics.is_empty(), "{head}");
        cases.push([head.to_owned()].into_iter().chain(diagnostics).collect::<Vec<_>>().join("\n    "));
    }
    let actual = cases.join("\n\n") + "\n";
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    } else {
        assert_eq!(actual, golden, "WEIR_BLESS=1 rewrites {name}");
    }
}

#[test]
fn errors_have_a_position_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text.toml"), "[x]\n").unwrap();
    fs::write(folder.path().join("bad.schema.json"), r#"{"type": 3}"#).unwrap();
    write_certificates(folder.path());
    let folder_name = folder.path().to_str().unwrap();
    compare_golden("problems.txt", |text| {
        let Err(problems) = config::parse(text, folder.path()) else { panic!("no error: {text}") };
        lines(&problems).iter().map(|line| line.replace(folder_name, "FOLDER")).collect()
    });
}

#[test]
fn unintended_settings_are_warned_about() {
    compare_golden("warnings.txt", |text| lines(&parsed(text).warnings));
    assert_eq!(parsed(&document("", "")).warnings, []);
}

#[test]
fn an_empty_file_is_an_error() {
    let expected = [
        r#"1:1: no route; write [[routes]] with match = { path = "/{*rest}" }"#,
        r#"1:1: no upstream; write [upstreams.NAME] with urls = ["http://HOST:PORT"]"#,
    ];
    assert_eq!(lines(&config::parse("", Path::new("")).unwrap_err()), expected);
}

#[test]
fn routes_in_single_brackets_are_an_error() {
    let text = "upstreams.a.urls = [\"http://h\"]\n[routes]\nmatch = { path = \"/\" }";
    let problems = config::parse(text, Path::new("")).unwrap_err();
    assert_eq!(lines(&problems), ["2:1: routes: invalid list of routes: a table; write its head as [[routes]]"]);
    let problems = config::parse("routes = []\nupstreams = {}", Path::new("")).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn routes_do_not_depend_on_headers_that_callers_may_forge() {
    for route in [
        "match = { path = \"/\", headers = { x-a = true } }",
        "match = { path = \"/\" }\ncaller = { header = \"X-A\" }\nrate_limit = \"1/1s\"",
        "match = { path = \"/\" }\npriority_from = { header = \"x-a\" }",
        "match = { path = \"/\" }\nsticky = { header = \"x-a\" }\nupstream = [{ name = \"a\", weight = 1 }]",
    ] {
        let text =
            format!("client_certificate_headers.san = \"x-a\"\nupstreams.a.urls = [\"http://h\"]\n[[routes]]\n{route}");
        let problems = config::parse(&text, Path::new("")).unwrap_err();
        let [problem] = problems.as_slice() else { panic!("{problems:?}\n{text}") };
        assert_eq!(problem.message, "the route depends on \"x-a\" of its callers, who may have forged it", "{text}");
    }
}

#[test]
fn an_upstream_has_at_most_64_hosts() {
    let urls = |count: usize| format!("urls = [{}]", r#""http://h","#.repeat(count));
    assert_eq!(parsed(&document("upstream", &urls(64))).upstreams[0].hosts.len(), 64);
    let problems = config::parse(&document("upstream", &urls(65)), Path::new("")).unwrap_err();
    assert_eq!(lines(&problems), ["3:8: upstreams.backend.urls: 65 hosts are too many; give 64 at most"]);
}

proptest! {
    /// Fragments of configurations in any order, and any text.
    #[test]
    fn any_text_is_parsed_or_rejected(text in prop_oneof![any::<String>(), pieces()]) {
        let count = text.split('\n').count();
        let problems = match config::parse(&text, Path::new("/nowhere")) {
            Ok(config) => {
                for route in &config.routes {
                    prop_assert_eq!(route.action == RouteAction::Forward, !route.upstreams.is_empty());
                }
                config.warnings
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                problems
            }
        };
        for problem in &problems {
            prop_assert!((1..=count).contains(&problem.line), "{problem}");
            prop_assert!(!problem.to_string().contains('\n'), "{problem}");
        }
        prop_assert!(problems.is_sorted());
    }
}

/// Lines with a key and the value of any other key.
fn pieces() -> impl Strategy<Value = String> {
    let headers =
        ["", "[upstreams.b]", "[policies.q]", "[[routes]]", "[routes.match]", "[routes.response]", "[routes.rewrite]"];
    let keys = [
        "urls",
        "tls",
        "health",
        "hedge",
        "retries",
        "budget",
        "success",
        "deadline",
        "buffer",
        "match",
        "path",
        "methods",
        "upstream",
        "policy",
        "rewrite",
        "deadline_from",
        "response",
        "deadline_exceeded",
        "merge",
        "query",
        "host",
        "set",
        "listen",
        "listeners",
        "address",
        "certificates",
        "admin",
        "headers",
        "grpc",
        "respond",
        "redirect",
        "sticky",
        "mirror",
        "balance",
        "hash_by",
        "resolve",
        "resolver",
        "include",
        "proxy_protocol",
        "client_certificate_headers",
        "workers",
    ];
    let values = [
        "1",
        "-1",
        "0x10",
        "1.5",
        "nan",
        "true",
        "\"\"",
        "\"/{*rest}\"",
        "\"1s\"",
        "\"p95\"",
        "\"5% + 250/10s\"",
        "\"q\"",
        "\"http://h\"",
        "[]",
        "[1]",
        "[\"http://h\"]",
        "[\"GET\"]",
        "{}",
        "{ path = \"/\" }",
        "\"/{a:[0-9]+}.b/{c}\"",
        "\"consistent-hash\"",
        "[{ name = \"b\", weight = 1 }]",
        "{ a = { regex = \"b\" } }",
        "{ upstream = \"b\" }",
        "\"${WEIR_TEST_NOT_SET}\"",
        "\"${WEIR_TEST_NOT_SET:-1}\"",
        "[\"*.toml\", \"a\\nb\"]",
        "\"v1\"",
        "{ san = \"x-a\" }",
        "{ after = \"1s\" }",
        "[{ after = \"1s\", attempts = 9 }]",
        "[{ address = \"127.0.0.1:0\", tls = { certificates = [{ cert = \"a\", key = 1 }] } }]",
        "{ a = \"b\" }",
        "2026-01-01",
        "{ status = \"200\", body = \"\u{e4}\" }",
    ];
    let line = prop_oneof![
        1 => prop::sample::select(headers.to_vec()).prop_map(str::to_owned),
        3 => (prop::sample::select(keys.to_vec()), prop::sample::select(values.to_vec()))
            .prop_map(|(key, value)| format!("{key} = {value}")),
    ];
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}

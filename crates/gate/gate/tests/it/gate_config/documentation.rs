//! Examples and keys of the pages about the gateway.

use std::fs;
use std::path::Path;

use weir_gate::config::{self, Diagnostic};

use super::{document, lines, write_certificates};

/// The pages about the gateway.
fn documentation() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let pages = fs::read_dir(docs.join("gate")).unwrap().map(|entry| entry.unwrap().path());
    pages.chain([docs.join("gate.md")]).map(|page| fs::read_to_string(page).unwrap() + "\n").collect()
}

#[test]
fn every_example_of_the_documentation_is_a_configuration() {
    let text = documentation();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("order.schema.json"), r#"{"type": "object"}"#).unwrap();
    write_certificates(folder.path());
    // What an example includes.
    fs::write(folder.path().join("upstreams.toml"), "upstreams.backend.urls = [\"http://h\"]\n").unwrap();
    fs::create_dir(folder.path().join("routes")).unwrap();
    fs::write(folder.path().join("routes/shop.toml"), "[[routes]]\nmatch = { path = \"/shop\" }\n").unwrap();
    let mut examples = 0;
    for block in text.split("```toml\n").skip(1) {
        let example = block.split("```").next().unwrap();
        // Fragments need an upstream and a route.
        let mut whole = example.to_owned();
        if !example.contains("upstreams.") {
            whole = format!("upstreams.backend.urls = [\"http://h\"]\n{whole}");
        }
        if !example.contains("[[routes]]") {
            whole.push_str("\n[[routes]]\nmatch = { path = \"/{*rest}\" }\nupstream = \"backend\"\n");
        }
        if let Err(problems) = config::parse(&whole, folder.path()) {
            panic!("{}\n{whole}", lines(&problems).join("\n"));
        }
        examples += 1;
    }
    assert!(examples > 5, "{examples} examples");
}

#[test]
fn every_key_is_in_the_documentation() {
    let text = documentation();
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/gate/keys.md")).unwrap();
    // The error of an unknown key lists the known ones, unless it is similar to one.
    let asked = [
        ("top", "zzzzzz = 1"),
        ("top", "cluster = { zzzzzz = 1 }"),
        ("top", "client_certificate_headers = { zzzzzz = 1 }"),
        ("top", "forwarding_headers = { zzzzzz = 1 }"),
        ("top", "listeners = [{ zzzzzz = 1, tls = { zzzzzz = 1, certificates = [{ zzzzzz = 1 }] } }]"),
        ("more", "zzzzzz = 1"),
        ("more", "tls = { zzzzzz = 1, insecure = true }"),
        ("more", "concurrency_limit = { zzzzzz = 1 }"),
        ("more", "breaker = { zzzzzz = 1 }"),
        ("more", "throttle = { zzzzzz = 1 }"),
        ("more", "shed_culprits = { zzzzzz = 1 }"),
        ("route", "priority_from = { zzzzzz = 1 }"),
        ("route", "caller = { zzzzzz = 1 }"),
        ("route", "rate_limit = { zzzzzz = 1 }"),
        ("route", "rate_limit = { rate = \"1/1s\", weight = { zzzzzz = 1 } }"),
        ("more", "health = { zzzzzz = 1, check = { zzzzzz = 1 } }"),
        ("policy", "zzzzzz = 1"),
        ("policy", "hedge = [{ zzzzzz = 1 }]"),
        ("policy", "retries = { zzzzzz = 1 }"),
        ("policy", "success = { zzzzzz = 1 }"),
        ("policy", "budget = { zzzzzz = 1 }"),
        ("policy", "deadline_headers = { zzzzzz = 1 }"),
        ("match", "match = { zzzzzz = 1 }"),
        ("match", "match = { path = \"/\", headers = { a = { zzzzzz = 1 } } }"),
        ("route", "respond = { zzzzzz = 1 }"),
        ("route", "redirect = { zzzzzz = 1 }"),
        ("route", "upstream = [{ zzzzzz = 1 }]"),
        ("route", "sticky = { zzzzzz = 1 }"),
        ("route", "mirror = { zzzzzz = 1 }"),
        ("more", "balance = \"consistent-hash\"\nhash_by = { zzzzzz = 1 }"),
        ("route", "zzzzzz = 1"),
        ("route", "rewrite = { zzzzzz = 1 }"),
        ("route", "deadline_from = { zzzzzz = 1 }"),
        ("route", "response = { zzzzzz = 1, deadline_exceeded = { zzzzzz = 1 } }"),
    ];
    for (slot, fragment) in asked {
        let problems = config::parse(&document(slot, fragment), Path::new("/nowhere")).unwrap_err();
        let about: Vec<&Diagnostic> = problems.iter().filter(|problem| problem.path.ends_with("zzzzzz")).collect();
        assert!(!about.is_empty(), "{fragment}");
        for key in about.iter().flat_map(|problem| problem.remedy.split('"').skip(1).step_by(2)) {
            assert!(text.contains(&format!("`{key}`")), "{key} of {fragment}");
            // Responses are described once.
            let is_listed = list.contains(&format!("`{key}`")) || list.contains(&format!(".{key}`"));
            assert!(is_listed, "{key} of {fragment} in keys.md");
        }
    }
}

//! Values in URLs do not move the host.

use proptest::prelude::*;

use super::*;
use crate::value::Value;

/// Origins and targets of a request whose URL has values `a` and `b` of a row; or why it is not sent.
fn sent(url: &str, a: &str, b: &str) -> Result<String, String> {
    let columns = ["a", "b"].into_iter().filter(|name| url.contains(&format!("{{{{{name}}}}}")));
    let settings = ScenarioSettings { columns: columns.map(str::to_owned).collect(), ..ScenarioSettings::default() };
    let plan = plan_with(&format!("GET {url}\n"), &settings);
    let values: Vec<_> = settings.columns.iter().map(|name| if name == "a" { a } else { b }.to_owned()).collect();
    let trace = World::new(&plan, 1).iterate_with(
        |_| ok(""),
        |table| plan.columns.iter().zip(values).for_each(|(slot, value)| table.set(*slot, Value::text(value))),
    );
    match trace.requests.first() {
        Some(request) => Ok(format!("{}{}", request.origin, request.text.split(' ').nth(1).unwrap())),
        None => Err(trace.findings[0].failures[0].to_string()),
    }
}

#[test]
fn a_value_behind_the_host_is_a_path() {
    for (url, a, b) in [
        ("http://h:1{{a}}", "@o:2/e", ""),
        ("http://h:1{{a}}", "0@o:2/e", ""),
        ("http://h:1{{a}}", "2/e", ""),
        ("http://h{{a}}", ":2/nop", ""),
        ("http://h{{a}}", ".o/", ""),
        ("http://h{{a}}/e", "2", ""),
        ("{{a}}{{b}}", "http://h", "@o/e"),
        ("{{a}}{{b}}", "http://h:1", "2/e"),
        ("{{a}}{{b}}", "", "http://o/e"),
        ("{{a}}{{b}}", "http:", "//o/e"),
        ("http://{{a}}{{b}}/", "", "o"),
        ("http://{{a}}{{b}}/", "h", "o"),
        ("http://{{a}}.h/", "o/", ""),
        ("http://10.0.0.{{a}}:1/", "1@o/", ""),
        ("http://h:{{a}}/", "1@o", ""),
        ("http://u:{{a}}@h/", "1@o/", ""),
        ("{{a}}://h/", "http://o/", ""),
    ] {
        let why = sent(url, a, b).unwrap_err();
        assert!(why.contains("would change the host; it must"), "{url} {a} {b}: {why}");
    }
    let why = sent("http://h{{a}}", "@o/", "").unwrap_err();
    assert!(why.ends_with("1:15: the value of 'a' would change the host; it must begin with /, ? or #"), "{why}");
}

#[test]
fn hosts_and_paths_of_values_are_sent() {
    for (url, a, b, expected) in [
        ("{{a}}/x", "http://h:1", "", "http://h:1/x"),
        ("{{a}}", "http://h:1/x?y", "", "http://h:1/x?y"),
        ("{{a}}{{b}}", "http://h:1", "/x", "http://h:1/x"),
        ("{{a}}{{b}}", "http://h:1", "", "http://h:1/"),
        ("{{a}}{{b}}", "http://h:1/", "x@y", "http://h:1/x@y"),
        ("{{a}}{{b}}", "http://", "h:1", "http://h:1/"),
        ("{{a}}://{{b}}/", "http", "h:1", "http://h:1/"),
        ("http://{{a}}/x", "h:1", "", "http://h:1/x"),
        ("http://{{a}}:{{b}}/", "h", "1", "http://h:1/"),
        ("http://{{a}}{{b}}", "h:1", "?x", "http://h:1/?x"),
        ("http://{{a}}.h:1/", "www", "", "http://www.h:1/"),
        ("http://10.0.0.{{a}}:1/", "7", "", "http://10.0.0.7:1/"),
        ("http://h{{a}}:1/", "2", "", "http://h2:1/"),
        ("http://h:{{a}}{{b}}", "1", "/x", "http://h:1/x"),
        ("http://{{a}}:{{b}}@h:1/", "me", "p@:w", "http://h:1/"),
        ("http://h:1{{a}}.json", "/x", "", "http://h:1/x.json"),
        ("http://h:1{{a}}", "/x", "", "http://h:1/x"),
        ("http://h:1/{{a}}", "@o:2/e", "", "http://h:1/@o:2/e"),
        ("http://h:1?{{a}}", "@o", "", "http://h:1/?@o"),
    ] {
        assert_eq!(sent(url, a, b).as_deref(), Ok(expected), "{url} {a} {b}");
    }
}

proptest! {
    #[test]
    fn no_value_moves_the_host(
        value in "[a-z0-9:@/?#.\\\\\\[\\]%-]{0,6}",
        url in prop::sample::select(vec![
            "http://h:1{{b}}", "http://h{{b}}", "{{a}}{{b}}", "http://{{a}}{{b}}", "http://h:1{{b}}/e", "{{a}}{{b}}/e",
            "http://u:{{b}}@h:1/", "{{a}}/{{b}}",
        ]),
        base in prop::sample::select(vec!["h:1", "h"]),
    ) {
        let base = if url.starts_with("{{a}}") { format!("http://{base}") } else { base.to_owned() };
        let expected = sent(url, &base, "").unwrap();
        let origin = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/");
        if let Ok(found) = sent(url, &base, &value) {
            prop_assert_eq!(origin(&found), origin(&expected), "{} {}", url, found);
        }
    }
}

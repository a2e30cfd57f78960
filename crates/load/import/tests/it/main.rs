//! Imports take processor time in proportion to their files, also of hostile ones: a file that is eight times as large takes
//! not much more than eight times as long. What grows with the square would take 64 times as long.
#![allow(clippy::disallowed_methods, reason = "it reads the processor time that an import took")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_import::{ImportFile, ImportSettings, import};

/// File of a size.
type Shape = fn(usize) -> String;

/// Least processor time of some imports of a file: a busy machine does not count.
fn time(name: &str, text: &str) -> Duration {
    let once = || {
        let start = processor_time();
        let _ = import([ImportFile { name, text: text.to_owned().into(), kind: None }], &ImportSettings::default());
        processor_time() - start
    };
    (0..2).map(|_| once()).min().unwrap()
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

fn joined(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

fn postman(item: &str) -> String {
    format!(
        r#"{{"info":{{"name":"x","schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"}},"item":[{item}]}}"#
    )
}

fn script(count: usize) -> String {
    let lines = joined(count, |n| format!(r#""var a{n} = pm.response.json().x{n};""#));
    let event = format!(r#"[{{"listen":"test","script":{{"exec":[{lines}]}}}}]"#);
    postman(&format!(r#"{{"name":"r","event":{event},"request":{{"method":"GET","url":"http://h/"}}}}"#))
}

/// A bad check among many, beside a body.
fn checks(count: usize) -> String {
    let lines = joined(count, |n| format!(r#""pm.expect(pm.response.json().x{n}).to.eql({n});""#));
    let event = format!(
        r#"[{{"listen":"test","script":{{"exec":[{lines},"pm.environment.set('a', pm.response.headers.get('{{{{'));"]}}}}]"#
    );
    let body = format!(r#"{{"mode":"raw","raw":"{}"}}"#, "x".repeat(count * 20));
    postman(&format!(r#"{{"name":"r","event":{event},"request":{{"method":"POST","url":"http://h/","body":{body}}}}}"#))
}

fn description(paths: &str, schemas: &str) -> String {
    format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"x","version":"1"}},"servers":[{{"url":"http://h"}}],"paths":{{{paths}}},"components":{{"schemas":{{{schemas}}}}}}}"#
    )
}

fn with_body(n: usize, schema: &str) -> String {
    format!(
        r##""/p{n}":{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{schema}"}}}}}}}},"responses":{{}}}}}}"##
    )
}

fn references(count: usize) -> String {
    let schemas = joined(count, |n| format!(r#""S{n}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#));
    description(&joined(count, |n| with_body(n, &format!("S{n}"))), &schemas)
}

/// The same large schema in each operation: there are as many values as the square of the count, up to those of one file.
fn instances(count: usize) -> String {
    let members = joined(count, |n| format!(r#""p{n}":{{"type":"string"}}"#));
    description(
        &joined(count, |n| with_body(n, "S")),
        &format!(r#""S":{{"type":"object","properties":{{{members}}}}}"#),
    )
}

fn merges(count: usize) -> String {
    let base: String = (0..count).map(|n| format!("  k{n}: {n}\n")).collect();
    let merges: String = (0..20).map(|_| "  <<: *a\n".to_owned()).collect();
    format!("openapi: 3.0.0\ninfo: {{title: x, version: '1'}}\npaths: {{}}\nx-a: &a\n{base}x-b:\n{merges}")
}

fn members(count: usize) -> String {
    let others: String = (0..count).map(|n| format!("x-{n}: 1\n")).collect();
    let paths: String = (0..count).map(|n| format!("  /p{n}:\n    get:\n      responses: {{}}\n")).collect();
    format!("openapi: 3.0.0\ninfo: {{title: x, version: '1'}}\n{others}servers:\n- url: http://h\npaths:\n{paths}")
}

fn http_references(count: usize) -> String {
    let request =
        |n: usize| format!("### a\n# @name a{n}\nGET http://h/{{{{a{}.response.body.$.x}}}}\n\n", n.max(1) - 1);
    (0..count).map(request).collect()
}

fn hosts(count: usize) -> String {
    (0..count).map(|n| format!("curl http://h{n}/\n")).collect()
}

#[test]
fn time_grows_with_the_size_of_a_file() {
    let shapes: [(&str, Shape, usize); 9] = [
        ("script.json", script, 200),
        ("checks.json", checks, 30),
        ("references.json", references, 40),
        // Values of the larger file would be 44 times as many without a bound, and are 12 times as many with it.
        ("instances.json", instances, 90),
        ("merges.yaml", merges, 150),
        ("members.yaml", members, 60),
        ("references.http", http_references, 40),
        ("hosts.sh", hosts, 60),
        (
            "many.json",
            |count| postman(&joined(count, |n| format!(r#"{{"name":"r","request":"http://h/{{{{v{n}}}}}"}}"#))),
            60,
        ),
    ];
    for (name, shape, count) in shapes {
        let (small, large) = (time(name, &shape(count)), time(name, &shape(8 * count)));
        let most = small * 8 * 4 + Duration::from_millis(50);
        assert!(large < most, "{name}: {small:?}, and {large:?} for eight times as much");
    }
}

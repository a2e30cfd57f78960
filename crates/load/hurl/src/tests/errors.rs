//! Mistakes: where they are found, how they are described, and that those after them are found too.

use super::errors_of;

#[test]
fn all_mistakes_of_a_file_are_found() {
    let text = "GET http://h\nAccept text/html\n[Query]\na b\nc: d\n[Opions]\nx: y\n[Options]\ndelai: 1s\nretry: many\n\
                \n\
                HTTP 20x\n[Captures]\nid jsonpath \"$.id\"\n[Asserts]\njsonpath \"$.id\n\n\
                POST http://h\n{\n  \"a\": 1,\n}\n\
                HTTP 200\n[Asserts]\nbody equals 1\n\nget http://h\n";
    assert_eq!(
        errors_of(text),
        [
            "2:8: expected ':', found 'text'",
            "4:3: expected ':', found 'b'",
            "6:2: expected a section of a request: [BasicAuth], [Cookies], [Form], [Multipart], [Options], [Query], \
             found 'Opions'; did you mean 'Options'?",
            "9:1: expected an option, found 'delai'; did you mean 'delay'?",
            "10:8: expected an integer, found 'many'",
            "12:8: expected the end of the line, found 'x'",
            "14:4: expected ':', found 'jsonpath'",
            "16:15: expected '\"', found the end of the line",
            "20:9: expected '}', found ','; remove the last comma",
            "24:6: expected a filter or a predicate, found 'equals'; write '=='",
            "26:1: expected a method in capital letters, such as GET, found 'get'",
        ]
    );
}

#[test]
fn text_before_the_first_request_is_one_mistake() {
    let text = "# shop\nhello world\n[Query]\na: b\nHTTP 200\nHEAD http://h\nGET\n";
    assert_eq!(
        errors_of(text),
        [
            "2:1: expected a request, such as 'GET http://host/path', found 'hello'",
            "7:4: expected a space, found the end of the line",
        ]
    );
}

#[test]
fn the_order_of_an_entry_is_checked() {
    let error = |text: &str| errors_of(&format!("GET http://h\n{text}\n")).join("\n");
    let asserts = "2:1: expected a section of a request, found '[Asserts]'; write a response, such as 'HTTP 200', \
                   before [Asserts]";
    assert_eq!(error("[Asserts]\nstatus == 200\nHTTP 200"), asserts);
    let query =
        "3:1: expected a section of a response: [Captures], [Asserts], found '[Query]'; [Query] is before the response";
    assert_eq!(error("HTTP 200\n[Query]\na: b"), query);
    let after = "a response or a request after a body";
    assert_eq!(error("{}\n{}"), format!("3:1: expected {after}, found '{{'"));
    assert_eq!(
        error("`x`\n[Query]\na: b"),
        format!("3:1: expected {after}, found '[Query]'; sections are before the body")
    );
    assert_eq!(error("`x`\na: b\nc: d"), format!("3:1: expected {after}, found 'a'"));
    assert_eq!(
        error("[Query]\na: b\n[Form]\n[QueryStringParams]\nc: d"),
        "5:1: expected one section [Query], found '[QueryStringParams]'"
    );
    assert_eq!(error("HTTP 200\nHTTP 201"), "3:1: expected one response to a request, found 'HTTP'");
    assert_eq!(error("[BasicAuth]\na: b\nc: d"), "4:1: expected one user in [BasicAuth], found 'c'");
}

#[test]
fn parsing_goes_on_after_a_broken_body() {
    let next = "\nHTTP 200\n[Asserts]\nstatos == 200\n";
    let bodies = [
        ("{\n\"a\": ]\n}", "3:6: expected a JSON value, found ']'"),
        ("{ \"a\":", "3:1: expected a JSON value, found 'HTTP'"),
        ("[1, 2", "3:1: expected ',' or ']', found 'HTTP'"),
        ("<a>\n<b></a>", "3:6: expected 'b', the element that is open, found 'a'"),
        (
            "```jsn\nHTTP 200\n```",
            "2:4: expected the end of the line or one of graphql, json, raw, xml, found 'jsn'; did you mean 'json'?",
        ),
        ("```\n{{x\n```", "3:4: expected '}}' or a filter, found the end of the line"),
        ("base64,AAA?;", "2:11: expected ';', found '?'"),
        ("file,x", "2:7: expected ';', found the end of the line"),
        ("`x", "2:3: expected '`', found the end of the line"),
        ("{} x", "2:4: expected the end of the line, found 'x'"),
    ];
    for (body, error) in bodies {
        let errors = errors_of(&format!("POST http://h\n{body}{next}"));
        assert_eq!(errors.len(), 2, "{body}: {errors:?}");
        assert_eq!(errors[0], error);
        assert!(errors[1].ends_with("expected a query, found 'statos'; did you mean 'status'?"), "{errors:?}");
    }
}

#[test]
fn a_block_without_an_end_does_not_hide_what_follows() {
    let errors = errors_of("POST http://h\n```\nx\nHTTP 200\n[Asserts]\nstatos == 200\n");
    let query = "6:1: expected a query, found 'statos'; did you mean 'status'?";
    assert_eq!(errors, ["2:1: expected a block that ends with ```, found the end of the file", query]);
}

#[test]
fn types_of_predicates_are_checked() {
    let error = |text: &str| errors_of(&format!("GET http://h\nHTTP 200\n[Asserts]\n{text}\n")).join("\n");
    assert_eq!(error("status > true"), "4:10: expected a number, a string or an expression, found 'true'");
    assert_eq!(error("body startsWith 1"), "4:17: expected a string, hex,...; or base64,...;, found '1'");
    assert_eq!(error("body matches 1"), "4:14: expected a regular expression: /.../ or \"...\", found '1'");
    assert_eq!(error("status ="), "4:8: expected a filter or a predicate, found '='; did you mean '=='?");
    assert_eq!(error("status"), "4:7: expected a filter or a predicate, found the end of the line");
    assert_eq!(error("status==200"), "4:7: expected a space, found '='");
    assert_eq!(
        error("status == ok"),
        "4:11: expected a value, such as \"text\", 12, true, null or {{variable}}, found 'ok'"
    );
    assert_eq!(error("body not"), "4:6: expected a filter or a predicate, found 'not'");
    assert_eq!(error("certificate \"Name\" exists").split(',').next(), Some("4:14: expected one of Expire-Date"));
    assert_eq!(error("cookie \"a[b]\" exists").split(',').next(), Some("4:11: expected one of Domain"));
}

#[test]
fn options_are_checked() {
    let error = |text: &str| errors_of(&format!("GET http://h\n[Options]\n{text}\n")).join("\n");
    assert_eq!(error("max_redirs: 3"), "3:1: expected an option, found 'max_redirs'; did you mean 'max-redirs'?");
    assert_eq!(error("location: yes"), "3:11: expected true or false, found 'yes'");
    assert_eq!(error("retry: -2"), "3:8: expected an integer of at least -1, found '-2'");
    assert_eq!(error("delay: 1d"), "3:9: expected a unit: ms, s, m or h, found 'd'");
    assert_eq!(error("cacert: # none"), "3:9: expected a file name, found '#'");
    assert_eq!(error("verbosity: loud"), "3:12: expected brief, verbose or debug, found 'loud'");
    let reserved = "3:11: expected a variable, found 'newUuid'; choose another name, since newUuid is a function";
    assert_eq!(error("variable: newUuid=1"), reserved);
    assert_eq!(error("variable: x"), "3:12: expected '=', found the end of the line");
}

#[test]
fn errors_are_limited() {
    let text = format!("GET http://h\n{}", "?\n".repeat(100_000));
    assert_eq!(errors_of(&text).len(), 100);
    let text = "POST http://h\n<a>\n".repeat(10_000);
    assert_eq!(errors_of(&text).len(), 100);
}

#[test]
fn deep_json_is_a_mistake() {
    let text = |depth: usize| format!("POST http://h\n{}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(crate::parse(&text(128)).is_ok());
    assert_eq!(
        errors_of(&text(100_000)),
        ["2:129: expected at most 128 arrays and objects within one another, found '['"]
    );
}

#[test]
fn invalid_json_is_described() {
    let error = |text: &str| errors_of(&format!("POST http://h\n{text}\n")).join("\n");
    assert_eq!(error("{a: 1}"), "2:2: expected a key in double quotes, found 'a'");
    assert_eq!(error("{\"a\" 1}"), "2:6: expected ':', found '1'");
    assert_eq!(error("[01]"), "2:3: expected ',' or ']', found '1'");
    assert_eq!(error("[1.]"), "2:4: expected a digit, found ']'");
    assert_eq!(error("[1,]"), "2:3: expected ']', found ','; remove the last comma");
    assert_eq!(error("[\"a\tb\"]"), "2:4: expected '\"' at the end of the string, found a tab");
    assert_eq!(error(r#"["\uf6x"]"#), "2:7: expected 4 hexadecimal digits, found 'x'");
    assert_eq!(error(r#"["\ud800\ud800"]"#), "2:4: expected a code point; surrogates are in pairs, found 'ud800'");
    assert!(error(r#"["\x"]"#).starts_with("2:4: expected an escape sequence of JSON: "));
    assert!(crate::parse("POST http://h\n[\"\\ud83d\\ude00\"]\n").is_ok());
}

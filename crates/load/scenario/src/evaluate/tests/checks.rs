//! Checks on one response.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_hurl::Assertion;

use super::super::{CheckFailure, CompiledCheck, RenderContext, ResponseView, VariableNames, VariableTable};
use crate::value::Value;

const BODY: &str = r#"{"id": 12, "price": 8.5, "name": "weir", "open": true, "none": null, "big": 123456789012345678901,
    "items": [{"id": 1, "tags": []}, {"id": 2, "tags": ["a", "b"]}], "at": "2026-01-31T12:00:00Z", "empty": {},
    "code": "a b&c", "uuid": "7f3b2c1a-1111-4222-8333-444455556666", "url": "http://h/?q=a%20b&n=1"}"#;

fn evaluate(check: &str) -> Result<(), CheckFailure> {
    let mut names = VariableNames::default();
    let slot = names.slot("twelve");
    let text = names.slot("text");
    let assertion = Assertion::parse(check).unwrap_or_else(|error| panic!("{check}: {error}"));
    let compiled = CompiledCheck::compile(&assertion, &mut names).unwrap_or_else(|error| panic!("{check}: {error}"));
    let mut variables = VariableTable::new(&names);
    variables.set(slot, Value::Integer(12));
    variables.set(text, Value::text("weir"));
    let headers: [(&str, &[u8]); 4] = [
        ("Content-Type", b"application/json"),
        ("X-A", b"1"),
        ("x-a", b"2"),
        ("Set-Cookie", b"sid=abc; Path=/shop; Max-Age=60; HttpOnly"),
    ];
    let view = ResponseView {
        version: "1.1",
        status: 200,
        headers: &headers,
        body: BODY.as_bytes(),
        raw_body: BODY.as_bytes(),
        duration: Nanos::from_millis(15),
        url: "http://h/items",
        ..ResponseView::default()
    };
    let mut context = RenderContext { rng: &mut SeededRng::new(1, 1), unix_s: 0, sequence: 0 };
    compiled.evaluate(&view, &variables, &mut context)
}

#[test]
fn checks_that_hold() {
    for check in [
        "status == 200",
        "status < 400",
        "status >= 200",
        "status != 404",
        "status toString matches /^2../",
        "version == \"1.1\"",
        "duration < 1000",
        "url endsWith \"/items\"",
        "header \"content-type\" == \"application/json\"",
        "header \"X-A\" count == 2",
        "header \"X-A\" includes \"2\"",
        "header \"none\" not exists",
        "cookie \"sid\" == \"abc\"",
        "cookie \"sid[Path]\" == \"/shop\"",
        "cookie \"sid[Max-Age]\" == 60",
        "cookie \"sid[HttpOnly]\" exists",
        "cookie \"sid[Secure]\" not exists",
        "body contains \"weir\"",
        "body not contains \"dam\"",
        "bytes count > 100",
        "body startsWith \"{\"",
        "jsonpath \"$.id\" == 12",
        "jsonpath \"$.id\" == {{twelve}}",
        "jsonpath \"$.id\" == 12.0",
        "jsonpath \"$.id\" isInteger",
        "jsonpath \"$.price\" isFloat",
        "jsonpath \"$.price\" > 8",
        "jsonpath \"$.name\" == \"{{text}}\"",
        "jsonpath \"$.name\" isString",
        "jsonpath \"$.name\" matches /^w.+r$/",
        "jsonpath \"$.name\" matches \"^{{text}}$\"",
        "jsonpath \"$.open\" == true",
        "jsonpath \"$.none\" == null",
        "jsonpath \"$.none\" exists",
        "jsonpath \"$.big\" == 123456789012345678901",
        "jsonpath \"$.big\" isNumber",
        "jsonpath \"$.items\" count == 2",
        "jsonpath \"$.items[*].id\" contains 2",
        "jsonpath \"$.items[*].id\" nth -1 == 2",
        "jsonpath \"$.items\" isList",
        "jsonpath \"$.items[0].tags\" isEmpty",
        "jsonpath \"$.items[0]\" isObject",
        "jsonpath \"$.items[?@.id == 2].tags\" first == \"a\"",
        "jsonpath \"$.missing\" not == 1",
        "jsonpath \"$.missing\" not isEmpty",
        "jsonpath \"$.items[?@.id == 3]\" not exists",
        "jsonpath \"$.at\" toDate \"%+\" dateFormat \"%d.%m.%Y\" == \"31.01.2026\"",
        "jsonpath \"$.at\" toDate \"%+\" daysAfterNow > 20000",
        "body charsetEncode \"latin1\" charsetDecode \"latin1\" startsWith \"{\"",
        "body xpath \"//p\" not exists",
        "redirects count == 0",
        "jsonpath \"$.empty\" isEmpty",
        "jsonpath \"$.items\" isCollection",
        "jsonpath \"$.at\" isIsoDate",
        "jsonpath \"$.uuid\" isUuid",
        "jsonpath \"$.missing\" not exists",
        "body jsonpath \"$.items[1].tags[1]\" == \"b\"",
        "regex /\"name\": \"(\\w+)\"/ == \"weir\"",
        "jsonpath \"$.code\" urlEncode == \"a%20b%26c\"",
        "jsonpath \"$.code\" htmlEscape == \"a b&amp;c\"",
        "jsonpath \"$.code\" split \" \" nth 1 == \"b&c\"",
        "jsonpath \"$.code\" replace \"a\" \"z\" == \"z b&c\"",
        "jsonpath \"$.code\" replaceRegex /[a-c]/ \"-\" == \"- -&-\"",
        "jsonpath \"$.url\" urlQueryParam \"q\" == \"a b\"",
        "jsonpath \"$.id\" toFloat == 12",
        "jsonpath \"$.name\" utf8Encode toHex == \"77656972\"",
        "jsonpath \"$.name\" utf8Encode base64Encode == \"d2Vpcg==\"",
        "variable \"twelve\" == 12",
        "jsonpath \"$.name\" utf8Encode base64Encode base64Decode == hex,77656972;",
        "sha256 toHex matches /^[0-9a-f]{64}$/",
        "md5 count == 16",
        "jsonpath \"$.name\" regex /(.)$/ == \"r\"",
    ] {
        assert_eq!(evaluate(check), Ok(()), "{check}");
    }
}

#[test]
fn checks_that_fail_say_what_was_found() {
    for (check, message) in [
        ("status == 404", "expected == 404, found 200"),
        ("status < 200", "expected < 200, found 200"),
        ("jsonpath \"$.id\" == \"12\"", "expected == \"12\", found 12"),
        ("jsonpath \"$.missing\" == 1", "expected == 1, found nothing"),
        ("jsonpath \"$.missing\" count == 0", "expected a value, found nothing to filter"),
        (
            "jsonpath \"$.id\" not isEmpty",
            "expected a value, found isEmpty cannot be tested on a value of type integer",
        ),
        ("jsonpath \"$.id\" not exists", "expected not exists, found 12"),
        ("header \"none\" exists", "expected exists, found nothing"),
        ("jsonpath \"$.name\" isInteger", "expected isInteger, found \"weir\""),
        ("jsonpath \"$.name\" > 1", "expected a value, found > cannot compare a string with a integer"),
        ("jsonpath \"$.id\" count == 1", "expected a value, found count cannot be applied to a value of type integer"),
        ("body contains \"{{missing}}\"", "expected a value, found variable missing has no value"),
        ("jsonpath \"$.name\" not matches /weir/", "expected not a match, found \"weir\""),
    ] {
        let failure = evaluate(check).expect_err(check);
        assert_eq!(failure.to_string(), message, "{check}");
    }
}

#[test]
fn what_scenarios_do_not_have_is_said_when_the_file_is_compiled() {
    for check in
        ["xpath \"//[\" exists", "certificate \"Subject\" exists", "jsonpath \"$.a[\" == 1", "body matches \"(\""]
    {
        let assertion = Assertion::parse(check).unwrap_or_else(|error| panic!("{check}: {error}"));
        let error = CompiledCheck::compile(&assertion, &mut VariableNames::default()).expect_err(check);
        assert_eq!(error.position.line, 1, "{check}: {error}");
    }
}

//! Responses: captures, asserts, predicates.

use super::{print_and_read, read};
use crate::{
    Assertion, CookieAttribute, ExpectedResponse, ExpectedStatus, ExpectedVersion, FilterKind, NumberLiteral,
    PlainFilter, PlainQuery, PredicateKind, PredicateOperator, PredicateValue, QueryKind, RegexPattern, ScalarValue,
    Templated, TextFilter, TextQuery, ValueTest,
};

fn response(text: &str) -> ExpectedResponse {
    let file = read(&format!("GET http://h\n{text}\n"));
    print_and_read(&file);
    file.entries[0].response.clone().unwrap()
}

fn assertion(text: &str) -> Assertion {
    let response = response(&format!("HTTP 200\n[Asserts]\n{text}"));
    assert_eq!(response.asserts.len(), 1, "{text}");
    assert_eq!(Assertion::parse(text).map(|assertion| assertion.to_string()), Ok(response.asserts[0].to_string()));
    response.asserts[0].clone()
}

#[test]
fn a_response_has_a_version_and_a_status() {
    let cases = [
        ("HTTP 200", ExpectedVersion::Any, ExpectedStatus::Code(200)),
        ("HTTP *", ExpectedVersion::Any, ExpectedStatus::Any),
        ("HTTP/1.0 404", ExpectedVersion::Http10, ExpectedStatus::Code(404)),
        ("HTTP/1.1\t200 # OK", ExpectedVersion::Http11, ExpectedStatus::Code(200)),
        ("HTTP/2 200", ExpectedVersion::Http2, ExpectedStatus::Code(200)),
        ("HTTP/3 200", ExpectedVersion::Http3, ExpectedStatus::Code(200)),
    ];
    for (text, version, status) in cases {
        let response = response(text);
        assert_eq!((response.version, response.status), (version, status), "{text}");
    }
}

#[test]
fn a_response_has_headers_sections_and_a_body() {
    let response =
        response("HTTP 200\nA: {{a}}\n[Asserts]\nstatus == 200\n# x\nbody exists\n\n[Captures]\nid: body\n[1, 2]\n");
    assert_eq!((response.headers.len(), response.asserts.len(), response.captures.len()), (1, 2, 1));
    assert!(response.body.is_some());
    assert_eq!(response.asserts[1].query.position.to_string(), "7:1");
}

#[test]
fn a_capture_has_a_query_and_filters() {
    let response = response(
        "HTTP 200\n[Captures]\nid: jsonpath \"$.id\" toInt  nth -1\n\
         {{name}}-x : header \"A\" regex /a\\/(b)/ redact # x\n",
    );
    let [id, token] = response.captures.as_slice() else { panic!("{response:?}") };
    assert!(!id.is_redacted && token.is_redacted);
    let kinds: Vec<_> = id.filters.iter().map(|filter| &filter.kind).collect();
    assert_eq!(kinds, [&FilterKind::Plain(PlainFilter::ToInt), &FilterKind::Nth(Templated::Literal(-1))]);
    let FilterKind::Regex(RegexPattern::Literal(pattern)) = &token.filters[0].kind else { panic!("{token:?}") };
    assert_eq!(pattern.pattern, "a/(b)");
    assert_eq!(token.name.parts.len(), 2);
    assert_eq!(token.filters[0].position.to_string(), "5:25");
}

#[test]
fn all_queries_are_read() {
    for query in PlainQuery::ALL {
        let kind = assertion(&format!("{query} exists")).query.kind;
        assert_eq!(kind, QueryKind::Plain(*query));
    }
    for query in TextQuery::ALL {
        let QueryKind::Text(name, argument) = assertion(&format!("{query} \"a\\\"{{{{b}}}}\" exists")).query.kind
        else {
            panic!("{query}")
        };
        assert_eq!((name, argument.parts.len()), (*query, 2));
    }
    assert!(matches!(assertion("regex /x/ exists").query.kind, QueryKind::Regex(RegexPattern::Literal(_))));
    assert!(matches!(assertion("regex \"x\" exists").query.kind, QueryKind::Regex(RegexPattern::Quoted(_))));
    assert!(matches!(assertion("certificate \"Subject-Alt-Name\" exists").query.kind, QueryKind::Certificate(_)));
    let QueryKind::Cookie(path) = assertion("cookie \"{{a}}b [ max-age ]\" exists").query.kind else {
        panic!("cookie")
    };
    assert_eq!((path.attribute, path.name.parts.len()), (Some(CookieAttribute::MaxAge), 2));
    assert!(matches!(assertion("cookie \"a\" exists").query.kind, QueryKind::Cookie(path) if path.attribute.is_none()));
}

#[test]
fn all_filters_are_read() {
    for filter in PlainFilter::ALL {
        assert_eq!(assertion(&format!("body {filter} exists")).filters[0].kind, FilterKind::Plain(*filter));
    }
    for filter in TextFilter::ALL {
        let kind = assertion(&format!("body {filter} \"x\" exists")).filters[0].kind.clone();
        assert!(matches!(kind, FilterKind::Text(name, _) if name == *filter), "{filter}");
    }
    assert_eq!(assertion("bytes decode \"gb2312\" == \"x\"").to_string(), "bytes charsetDecode \"gb2312\" == \"x\"");
    let filters = assertion("body replace \"a\" \"b\" replaceRegex /c/ \"$1\" nth {{i}} count > 0").filters;
    assert!(matches!(&filters[0].kind, FilterKind::Replace { .. }));
    assert!(matches!(&filters[1].kind, FilterKind::ReplaceRegex { .. }));
    assert!(matches!(&filters[2].kind, FilterKind::Nth(Templated::Expression(_))));
    assert_eq!(filters.len(), 4);
}

#[test]
fn all_predicates_are_read() {
    for test in ValueTest::ALL {
        let predicate = assertion(&format!("body not\t {test}")).predicate;
        assert_eq!((predicate.is_negated, predicate.kind), (true, PredicateKind::Test(*test)));
    }
    for operator in PredicateOperator::ALL {
        let predicate = assertion(&format!("body {operator} \"x\"")).predicate;
        assert!(matches!(predicate.kind, PredicateKind::Compare(name, _) if name == *operator), "{operator}");
    }
    assert!(matches!(
        assertion("status >=200").predicate.kind,
        PredicateKind::Compare(PredicateOperator::GreaterOrEqual, _)
    ));
}

#[test]
fn predicates_compare_with_any_type() {
    let value = |text: &str| match assertion(&format!("body == {text}")).predicate.kind {
        PredicateKind::Compare(_, value) => value,
        PredicateKind::Test(test) => panic!("{test}"),
    };
    assert_eq!(value("null"), PredicateValue::Scalar(ScalarValue::Null));
    assert_eq!(value("true # x"), PredicateValue::Scalar(ScalarValue::Bool(true)));
    assert_eq!(value("-1.50"), PredicateValue::Scalar(ScalarValue::Number(NumberLiteral::Float(-1.5))));
    assert!(
        matches!(value("\"a\\u{20ac}\""), PredicateValue::Scalar(ScalarValue::Text(text)) if text.as_text() == Some("a\u{20ac}"))
    );
    assert!(
        matches!(value("`\"a\"`"), PredicateValue::Scalar(ScalarValue::Text(text)) if text.as_text() == Some("\"a\""))
    );
    assert!(matches!(value("```\na\n```"), PredicateValue::Block(_)));
    assert!(matches!(value("hex,00;"), PredicateValue::Bytes(_)));
    assert!(matches!(value("base64,AA==;"), PredicateValue::Bytes(_)));
    assert!(matches!(value("file,x;"), PredicateValue::File(_)));
    assert!(matches!(value("{{x}}"), PredicateValue::Expression(_)));
    assert!(matches!(value("/x/"), PredicateValue::Regex(_)));
}

#[test]
fn one_assert_is_parsed_by_itself() {
    assert!(Assertion::parse(" status == 200 ").is_ok());
    assert_eq!(Assertion::parse("status == 200\nx").unwrap_err().to_string(), "2:1: expected one assert, found 'x'");
    assert_eq!(Assertion::parse("").unwrap_err().to_string(), "1:1: expected a query, found the end of the file");
}

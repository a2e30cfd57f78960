//! Requests: lines, sections, bodies.

use std::time::Duration;

use super::{print_and_read, read};
use crate::{
    BlockContent, BodyContent, BytesLiteral, HurlRequest, JsonPiece, LogVerbosity, MultipartValue, NumberLiteral,
    OptionCount, OptionDuration, OptionName, OptionValue, ScalarValue, Template, Templated,
};

fn request(text: &str) -> HurlRequest {
    let file = read(text);
    print_and_read(&file);
    assert_eq!(file.entries.len(), 1, "{text}");
    file.entries[0].request.clone()
}

fn body(text: &str) -> BodyContent {
    request(&format!("POST http://h\n{text}\n")).body.unwrap().content
}

fn text(template: &Template) -> &str {
    template.as_text().unwrap()
}

#[test]
fn an_empty_file_has_no_entries() {
    for text in ["", "\n\n", " \t\r\n", "\u{feff}"] {
        assert!(read(text).entries.is_empty() && read(text).comments.is_empty(), "{text:?}");
    }
}

#[test]
fn a_request_has_a_method_a_url_and_headers() {
    let request =
        request("  BREW  http://h/a?b=c\\#d   # tea\nAccept: */*\n  X-Empty :\n\n# between\nX-\\u{e9}: a:b  \n");
    assert_eq!((request.method.as_str(), text(&request.url)), ("BREW", "http://h/a?b=c#d"));
    assert_eq!(request.position.to_string(), "1:3");
    let headers: Vec<_> = request.headers.iter().map(|header| (text(&header.name), text(&header.value))).collect();
    assert_eq!(headers, [("Accept", "*/*"), ("X-Empty", ""), ("X-\u{e9}", "a:b")]);
}

#[test]
fn entries_follow_one_another() {
    let file = read("GET http://h/1\nGET http://h/2\r\nHTTP 200\r\n\r\nGET http://h/3");
    let urls: Vec<_> = file.entries.iter().map(|entry| text(&entry.request.url)).collect();
    assert_eq!(urls, ["http://h/1", "http://h/2", "http://h/3"]);
    assert_eq!(file.entries.iter().map(|entry| entry.response.is_some()).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn comments_belong_to_the_entry_that_follows() {
    let file = read(
        "# @name log in\n# two\nGET http://h # three\n# four\nA: b # five\n\n\
         # @name list\nGET http://h\nHTTP 200\n# end",
    );
    let comments = |index: usize| file.entries[index].comments.iter().map(|it| it.text.trim()).collect::<Vec<_>>();
    assert_eq!(comments(0), ["@name log in", "two", "three", "four", "five"]);
    assert_eq!(comments(1), ["@name list"]);
    assert_eq!(file.entries.iter().map(|entry| entry.name()).collect::<Vec<_>>(), [Some("log in"), Some("list")]);
    assert_eq!(file.comments[0].text, " end");
    assert_eq!(file.comments[0].position.to_string(), "10:1");
    print_and_read(&file);
}

#[test]
fn sections_have_two_spellings() {
    let short =
        "POST http://h\n[Query]\na: 1\n[Form]\nb: {{x}}\n[Multipart]\nc: 3\n[Cookies]\nd: 4\n[BasicAuth]\ne: f\n";
    let long = short
        .replace("Query", "QueryStringParams")
        .replace("Form]", "FormParams]")
        .replace("Multipart", "MultipartFormData");
    assert_eq!(read(&long).to_string(), short);
    let request = request(short);
    assert_eq!(text(&request.query[0].name), "a");
    assert_eq!(request.form[0].value.expressions().count(), 1);
    assert_eq!(text(&request.cookies[0].value), "4");
    assert_eq!(text(&request.basic_auth.unwrap().value), "f");
    assert!(matches!(&request.multipart[0].value, MultipartValue::Text(value) if text(value) == "3"));
}

#[test]
fn empty_sections_are_allowed() {
    let request = request("GET http://h\n[Query]\n[BasicAuth]  # none\n\n[Options]\n");
    assert!(request.query.is_empty() && request.basic_auth.is_none() && request.options.is_empty());
}

#[test]
fn parts_of_a_multipart_body_are_texts_or_files() {
    let request =
        request("POST http://h\n[Multipart]\na: file\nb: file, a\\ b.txt ; text/html; x\nc: file,c;\nd: \\u{66}ile,\n");
    let parts: Vec<String> = request.multipart.iter().map(ToString::to_string).collect();
    assert_eq!(parts, ["a: file", "b: file,a\\ b.txt; text/html; x", "c: file,c;", "d: \\u{66}ile,"]);
    assert!(matches!(&request.multipart[2].value, MultipartValue::File { content_type: None, .. }));
    assert!(matches!(&request.multipart[3].value, MultipartValue::Text(value) if text(value) == "file,"));
}

#[test]
fn options_have_values_of_their_type() {
    let request = request(
        "GET http://h\n[Options]\nlocation: true\nskip: {{skip}}\nretry: -1\nmax-redirs : 3\ndelay: 90s\n\
         max-time: 250\nlimit-rate: 2000\nuser: a:b\ncacert: a\\;b.pem\ncert: a\\:b.pem:p:w\nverbosity: debug\n\
         variable: n=1.5\n\
         variable: t = 12 # x\nvariable: s=true_story\nvariable: q=\"12\"\nvariable: b=true\nhttp1.1: false\n",
    );
    let values: Vec<_> = request.options.iter().map(|option| (option.name.as_str(), &option.value)).collect();
    assert_eq!(values[0], ("location", &OptionValue::Flag(Templated::Literal(true))));
    assert!(matches!(values[1].1, OptionValue::Flag(Templated::Expression(_))));
    assert_eq!(values[2].1, &OptionValue::Count(Templated::Literal(OptionCount::Infinite)));
    assert_eq!(values[3], ("max-redirs", &OptionValue::Count(Templated::Literal(OptionCount::Finite(3)))));
    let duration = |millis| OptionValue::Duration(Templated::Literal(OptionDuration(Duration::from_millis(millis))));
    assert_eq!((values[4].1, values[5].1), (&duration(90_000), &duration(250)));
    assert_eq!(values[6].1, &OptionValue::Natural(Templated::Literal(2000)));
    assert!(matches!(values[7].1, OptionValue::Text(value) if text(value) == "a:b"));
    assert!(matches!(values[8].1, OptionValue::File(name) if text(name) == "a;b.pem"));
    let OptionValue::Certificate { file, password: Some(password) } = values[9].1 else { panic!("{values:?}") };
    assert_eq!((text(file), text(password)), ("a:b.pem", "p:w"));
    assert_eq!(values[10].1, &OptionValue::Verbosity(LogVerbosity::Debug));
    let variable = |index: usize| match values[index].1 {
        OptionValue::Variable(variable) => (variable.name.as_str(), &variable.value),
        _ => panic!("{values:?}"),
    };
    assert_eq!(variable(11), ("n", &ScalarValue::Number(NumberLiteral::Float(1.5))));
    assert_eq!(variable(12), ("t", &ScalarValue::Number(NumberLiteral::Integer(12))));
    assert!(matches!(variable(13).1, ScalarValue::Text(value) if text(value) == "true_story"));
    assert!(matches!(variable(14).1, ScalarValue::Text(value) if text(value) == "12"));
    assert_eq!(variable(15), ("b", &ScalarValue::Bool(true)));
    assert_eq!(values[16].0, "http1.1");
    assert_eq!(request.options[1].position.to_string(), "4:1");
}

#[test]
fn every_option_has_a_name_and_a_value() {
    for name in OptionName::ALL {
        let value = ["true", "1", "a", "x=1", "brief"];
        let is_valid = |value: &&str| crate::parse(&format!("GET http://h\n[Options]\n{name}: {value}\n")).is_ok();
        assert!(value.iter().any(is_valid), "{name}");
    }
}

#[test]
fn json_is_cut_at_expressions() {
    let BodyContent::Json(json) = body(r#"{ "a{{k}}": [ {{n}}, "x\u00e9{{s}}" ] }"#) else { panic!("JSON") };
    assert_eq!(json.pieces.len(), 7);
    assert!(matches!(&json.pieces[0], JsonPiece::Verbatim(text) if text == r#"{ "a"#));
    assert!(matches!(&json.pieces[1], JsonPiece::InString(_)));
    assert!(matches!(&json.pieces[3], JsonPiece::Value(expression) if expression.position.to_string() == "2:17"));
    assert!(matches!(&json.pieces[4], JsonPiece::Verbatim(text) if text == r#", "x\u00e9"#));
    for text in
        ["{}", "[]", "[1]", "[true]", "-1.5e+3", "0", "\"x\"", "null", "{{x}}", "[\n\n{\"a\" : [[]]} , 1\n]", "true"]
    {
        let BodyContent::Json(json) = body(text) else { panic!("{text}") };
        assert_eq!(json.to_string(), text);
    }
}

#[test]
fn bodies_are_of_any_kind() {
    assert!(matches!(body("<a>\n{{x}}\n</a>"), BodyContent::Xml(text) if text == "<a>\n{{x}}\n</a>"));
    assert!(matches!(body("`a\\n\\`{{x}}`"), BodyContent::OneLine(text) if text.parts.len() == 2));
    assert_eq!(body("base64,AAE=;"), BodyContent::Bytes(BytesLiteral::Base64(vec![0, 1])));
    assert_eq!(body("hex, 0aFF;"), BodyContent::Bytes(BytesLiteral::Hex(vec![10, 255])));
    assert!(matches!(body("file, a\\ {{x}}.bin;"), BodyContent::File(name) if name.parts.len() == 3));
}

#[test]
fn blocks_have_a_language() {
    let block = |text: &str| match body(text) {
        BodyContent::Block(block) => block.content,
        body => panic!("{body:?}"),
    };
    assert!(matches!(block("```\na\n\\n{{x}}b```"), BlockContent::Text(text) if text.parts.len() == 3));
    assert!(matches!(block("```json  \n{\n```"), BlockContent::Json(value) if text(&value) == "{\n"));
    assert!(matches!(block("```xml\r\n<a/>\n```"), BlockContent::Xml(value) if text(&value) == "<a/>\n"));
    assert!(matches!(block("```raw\n{{x}} {{\n```"), BlockContent::Raw(text) if text == "{{x}} {{\n"));
    assert!(matches!(block("```\n```"), BlockContent::Text(text) if text.parts.is_empty()));
    let graphql =
        "```graphql\nquery($id: ID!) {\n  item(id: $id)\n}\n\nvariables {\n  \"id\": {{id}}, \"n\": \"a b\"\n}\n\n```";
    let BlockContent::GraphQl { query, variables: Some(variables) } = block(graphql) else { panic!("{graphql}") };
    assert_eq!(text(&query), "query($id: ID!) {\n  item(id: $id)\n}\n\n");
    assert_eq!(variables.to_string(), r#"{"id":{{id}},"n":"a b"}"#);
    let without = block("```graphql\n{ variables }\nvariables\n```");
    assert!(matches!(without, BlockContent::GraphQl { variables: None, .. }));
}

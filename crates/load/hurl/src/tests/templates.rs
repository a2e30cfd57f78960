//! Templates: text, escape sequences, expressions.

use super::{errors_of, print_and_read, read};
use crate::{
    Expression, ExpressionSource, FilterKind, PlainFunction, Template, TemplateFunction, TemplatePart, TextPosition,
};

fn url(text: &str) -> Template {
    let file = read(&format!("GET {text}\n"));
    print_and_read(&file);
    file.entries[0].request.url.clone()
}

#[test]
fn text_and_expressions_alternate() {
    let url = url("{{base}}/items/{{ id }}?x={{x}}");
    let parts = url.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Expression(expression) => format!("{expression}@{}", expression.position),
    });
    assert_eq!(parts.collect::<Vec<_>>(), ["{{base}}@1:7", "/items/", "{{id}}@1:23", "?x=", "{{x}}@1:33"]);
    assert_eq!(url.position.to_string(), "1:5");
}

#[test]
fn escape_sequences_are_resolved() {
    let url = url(r##"a\#\"\`\\\/\b\n\f\r\t\u{1F600}b \u{20}"##);
    assert_eq!(url.as_text(), Some("a#\"`\\/\u{8}\n\u{c}\r\t\u{1f600}b  "));
}

#[test]
fn braces_are_text_unless_doubled() {
    assert_eq!(url("a{b}c}}{").as_text(), Some("a{b}c}}{"));
    assert_eq!(url(r"\u{7b}\u{7b}x}}").as_text(), Some("{{x}}"));
    let text = url(r"\u{7b}{{x}}");
    assert_eq!(text.parts.len(), 2);
    assert_eq!(text.to_string(), r"\u{7b}{{x}}");
}

#[test]
fn functions_are_known_by_name() {
    let source = |text: &str| url(text).expressions().next().unwrap().source.clone();
    let plain = |function| ExpressionSource::Function(TemplateFunction::Plain(function));
    assert_eq!(source("{{newUuid}}"), plain(PlainFunction::NewUuid));
    assert_eq!(source("{{newDate}}"), plain(PlainFunction::NewDate));
    assert_eq!(source("{{newDates}}"), ExpressionSource::Variable("newDates".into()));
    let random = TemplateFunction::RandomInt { min: -1, max: 9 };
    assert_eq!(source("{{randomInt -1  9}}"), ExpressionSource::Function(random));
    assert_eq!(source("{{randomString 8}}"), ExpressionSource::Function(TemplateFunction::RandomString { length: 8 }));
}

#[test]
fn expressions_have_filters_with_quotes_in_them() {
    let url = url(r##"{{x replace "}} #" "{{y}}" urlEncode}}"##);
    let filters = &url.expressions().next().unwrap().filters;
    assert_eq!(filters.len(), 2);
    assert!(matches!(&filters[0].kind, FilterKind::Replace { old, .. } if old.as_text() == Some("}} #")));
    let json = read("POST http://h\n{\"a\": \"{{x split \",\" first}}\"}\n");
    print_and_read(&json);
}

#[test]
fn invalid_expressions_have_an_error() {
    let error = |text: &str| errors_of(&format!("GET {text}\n")).join("\n");
    assert_eq!(error("{{}}"), "1:7: expected a variable or a function, found '}'");
    assert_eq!(error("{{x"), "1:8: expected '}}' or a filter, found the end of the line");
    assert_eq!(error("{{x}"), "1:8: expected '}}' or a filter, found '}'");
    assert_eq!(error("{{x.y}}"), "1:8: expected '}}' or a filter, found '.'");
    assert_eq!(error("{{x toint}}"), "1:9: expected '}}' or a filter, found 'toint'; did you mean 'toInt'?");
    assert_eq!(error("{{{x}}}"), "1:7: expected a variable or a function, found '{'");
    assert_eq!(error("{{randomInt 9 1}}"), "1:19: expected a maximum of at least 9, found '1'");
    assert_eq!(error("{{randomInt}}"), "1:16: expected a space, found '}'");
    assert!(error(r"a\xb").starts_with("1:7: expected an escape sequence: \\#, "), "{}", error(r"a\xb"));
    let code_point = "expected a code point in hexadecimal digits, such as 1f600";
    assert_eq!(error(r"\u{110000}"), format!("1:8: {code_point}, found '110000'"));
    assert_eq!(error(r"\u{d800}"), format!("1:8: {code_point}, found 'd800'"));
}

#[test]
fn nested_expressions_are_limited() {
    let nested = |depth: usize| format!("GET {}x{}\n", "{{a split \"".repeat(depth), "\"}}".repeat(depth));
    assert!(crate::parse(&nested(16)).is_ok());
    let errors = errors_of(&nested(100_000));
    assert!(errors[0].contains("at most 16 expressions within one another"), "{errors:?}");
}

#[test]
fn a_whole_text_is_a_template_in_which_only_braces_are_special() {
    let template = Template::parse("a\\n#\n\"{\"n\": {{n}}}`").expect("valid");
    let parts = [
        TemplatePart::Text("a\\n#\n\"{\"n\": ".to_owned()),
        TemplatePart::Expression(Expression {
            position: TextPosition { line: 2, column: 10 },
            ..Expression::variable("n")
        }),
        TemplatePart::Text("}`".to_owned()),
    ];
    assert_eq!(template.parts, parts);
    assert_eq!(Template::parse("").expect("valid").parts, []);
    assert_eq!(
        Template::parse("{{#}}").expect_err("no name").to_string(),
        "1:3: expected a variable or a function, found '#'"
    );
}

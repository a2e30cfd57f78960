//! Nodes by themselves, as importers use them.

use crate::{BytesLiteral, Expression, JsonText, Template};

#[test]
fn json_is_parsed_by_itself() {
    let json = JsonText::parse("{\"a\": \"{{x}}\"}\n").unwrap();
    assert_eq!((json.pieces.len(), json.to_string().as_str()), (3, "{\"a\": \"{{x}}\"}"));
    assert_eq!(JsonText::parse("{} x").unwrap_err().to_string(), "1:4: expected the end of the JSON value, found 'x'");
    assert_eq!(JsonText::parse("").unwrap_err().to_string(), "1:1: expected a JSON value, found the end of the file");
}

#[test]
fn a_template_of_text_has_no_expressions() {
    assert_eq!(Template::text("{{x}}").as_text(), Some("{{x}}"));
    assert_eq!(Template::text("").as_text(), Some(""));
    let mut template = Template::text("a");
    template.parts.push(crate::TemplatePart::Expression(Expression::variable("x")));
    assert_eq!((template.as_text(), template.expressions().count()), (None, 1));
    assert_eq!(template.to_string(), "a{{x}}");
}

#[test]
fn bytes_are_those_of_either_notation() {
    assert_eq!(BytesLiteral::Hex(vec![1]).as_bytes(), BytesLiteral::Base64(vec![1]).as_bytes());
}

//! Templates with values of all types.

use weir_base::rng::SeededRng;
use weir_hurl::HurlFile;

use super::super::{CompiledTemplate, RenderContext, TemplateError, VariableNames, VariableTable};
use crate::value::Value;

fn render(text: &str, value: Option<Value>) -> Result<String, TemplateError> {
    let file: HurlFile =
        weir_hurl::parse(&format!("GET http://h/{text}\n")).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut names = VariableNames::default();
    let slot = names.slot("v");
    let template = CompiledTemplate::compile(&file.entries[0].request.url, &mut names).expect("known filters");
    let mut variables = VariableTable::new(&names);
    if let Some(value) = value {
        variables.set(slot, value);
    }
    let mut out = Vec::new();
    let mut context = RenderContext { rng: &mut SeededRng::new(1, 1), unix_s: 0, sequence: 7 };
    template.render(&variables, &mut context, &mut out)?;
    Ok(String::from_utf8_lossy(&out).strip_prefix("http://h/").expect("the prefix").to_owned())
}

#[test]
fn values_have_their_text() {
    for (value, text) in [
        (Value::Null, "null"),
        (Value::Bool(true), "true"),
        (Value::Integer(-3), "-3"),
        (Value::Float(1.0), "1.0"),
        (Value::Number("123456789012345678901".into()), "123456789012345678901"),
        (Value::text("é"), "é"),
        (Value::Object("{\"a\":1}".into()), "{\"a\":1}"),
        (Value::List(vec![Value::Integer(1), Value::text("a\"")]), "[1,\"a\\\"\"]"),
    ] {
        assert_eq!(render("{{v}}", Some(value.clone())), Ok(text.to_owned()), "{value:?}");
    }
    assert_eq!(render("{{v}}", Some(Value::Bytes(vec![1]))), Err(TemplateError::NoText("bytes")));
    assert_eq!(render("{{v}}", None), Err(TemplateError::Unset("v".into())));
}

#[test]
fn filters_change_the_value() {
    assert_eq!(render("{{v urlEncode}}-{{v}}", Some(Value::text("a b"))), Ok("a%20b-a b".to_owned()));
    assert_eq!(
        render("{{v nth 1}}", Some(Value::List(vec![Value::Integer(1), Value::Integer(2)]))),
        Ok("2".to_owned())
    );
    assert!(render("{{v toInt}}", Some(Value::text("x"))).is_err());
    assert!(render("{{v first}}", Some(Value::List(Vec::new()))).is_err());
}

#[test]
fn random_values_are_those_of_their_seed() {
    for text in ["{{newUuid}}", "{{randomInt 1 1000000}}", "{{randomString 12}}", "{{randomEmail}}", "{{newDate}}"] {
        assert_eq!(render(text, None), render(text, None), "{text}");
    }
    assert_eq!(render("{{randomString 12}}", None).map(|text| text.len()), Ok(12));
}

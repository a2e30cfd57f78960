//! Stand-in, to be replaced.
#![allow(missing_docs, clippy::semicolon_if_nothing_returned, reason = "replaced")]
use crate::value::Value;
use std::collections::BTreeMap;
use std::fmt;
use weir_decide::base::rng::SeededRng;
use weir_hurl::*;
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariableSlot(pub u32);
#[derive(Clone, Debug, Default)]
pub struct VariableNames(BTreeMap<String, u32>);
impl VariableNames {
    pub fn slot(&mut self, n: &str) -> VariableSlot {
        let l = self.0.len() as u32;
        VariableSlot(*self.0.entry(n.into()).or_insert(l))
    }
    pub fn get(&self, n: &str) -> Option<VariableSlot> {
        self.0.get(n).map(|s| VariableSlot(*s))
    }
}
#[derive(Clone, Debug, Default)]
pub struct VariableTable(Vec<Option<Value>>);
impl VariableTable {
    pub fn new(n: &VariableNames) -> Self {
        Self(vec![None; n.0.len()])
    }
    pub fn set(&mut self, s: VariableSlot, v: Value) {
        self.0[s.0 as usize] = Some(v)
    }
    pub fn get(&self, s: VariableSlot) -> Option<&Value> {
        self.0[s.0 as usize].as_ref()
    }
}
#[derive(Debug)]
pub struct RenderContext<'a> {
    pub rng: &'a mut SeededRng,
    pub unix_s: i64,
    pub sequence: u64,
}
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateError;
impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("template")
    }
}
#[derive(Clone, Debug)]
enum P {
    T(String),
    V(VariableSlot),
    F,
}
#[derive(Clone, Debug)]
pub struct CompiledTemplate(Vec<P>);
impl CompiledTemplate {
    pub fn compile(t: &Template, n: &mut VariableNames) -> Result<Self, ParseError> {
        Ok(Self(
            t.parts
                .iter()
                .map(|p| match p {
                    TemplatePart::Text(t) => P::T(t.clone()),
                    TemplatePart::Expression(e) => match &e.source {
                        ExpressionSource::Variable(v) => P::V(n.slot(v)),
                        ExpressionSource::Function(_) => P::F,
                    },
                })
                .collect(),
        ))
    }
    pub fn render(&self, v: &VariableTable, c: &mut RenderContext<'_>, out: &mut Vec<u8>) -> Result<(), TemplateError> {
        for p in &self.0 {
            match p {
                P::T(t) => out.extend_from_slice(t.as_bytes()),
                P::V(s) => {
                    out.extend_from_slice(v.get(*s).and_then(Value::template_text).ok_or(TemplateError)?.as_bytes())
                }
                P::F => out.extend_from_slice(c.rng.bits().to_string().as_bytes()),
            }
        }
        Ok(())
    }
}
#[derive(Clone, Debug, PartialEq)]
pub struct CheckFailure {
    pub actual: String,
    pub expected: String,
}
impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("check")
    }
}
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureFailure;
impl fmt::Display for CaptureFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("capture")
    }
}
#[derive(Clone, Debug)]
pub struct ResponseView<'a> {
    pub status: u16,
    pub headers: &'a [(&'a str, &'a [u8])],
    pub body: &'a [u8],
}
impl<'a> ResponseView<'a> {
    pub fn header(&self, n: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(n)).map(|(_, v)| *v)
    }
}

fn find(body: &[u8], path: &str) -> Option<serde_json::Value> {
    let mut value: serde_json::Value = serde_json::from_slice(body).ok()?;
    for part in path.trim_start_matches('$').split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        value = match part.parse::<usize>() {
            Ok(index) => value.get(index)?.clone(),
            Err(_) => value.get(part)?.clone(),
        };
    }
    Some(value)
}
fn path_of(query: &ResponseQuery) -> Result<Option<String>, ParseError> {
    let QueryKind::Text(TextQuery::JsonPath, path) = &query.kind else { return Ok(None) };
    let text = path.as_text().unwrap_or_default();
    if text.ends_with('[') {
        return Err(ParseError {
            position: path.position,
            expected: "a JSONPath".into(),
            found: text.into(),
            hint: String::new(),
        });
    }
    Ok(Some(text.to_owned()))
}
#[derive(Clone, Debug)]
pub struct CompiledCapture(VariableSlot, Option<String>);
impl CompiledCapture {
    pub fn compile(c: &Capture, n: &mut VariableNames) -> Result<Self, ParseError> {
        Ok(Self(n.slot(c.name.as_text().unwrap_or("x")), path_of(&c.query)?))
    }
    pub fn needs_body(&self) -> bool {
        true
    }
    pub fn evaluate(
        &self,
        v: &ResponseView<'_>,
        t: &mut VariableTable,
        _c: &mut RenderContext<'_>,
    ) -> Result<(), CaptureFailure> {
        let Some(path) = &self.1 else {
            t.set(self.0, Value::Integer(v.status.into()));
            return Ok(());
        };
        let value = match find(v.body, path).ok_or(CaptureFailure)? {
            serde_json::Value::String(s) => Value::Text(s),
            v => Value::Text(v.to_string()),
        };
        t.set(self.0, value);
        Ok(())
    }
}
#[derive(Clone, Debug)]
pub struct CompiledCheck {
    path: Option<String>,
    count: bool,
    kind: PredicateKind,
}
impl CompiledCheck {
    pub fn is_about_status(&self) -> bool {
        false
    }
    pub fn compile(a: &Assertion, _n: &mut VariableNames) -> Result<Self, ParseError> {
        if let PredicateKind::Compare(PredicateOperator::Matches, PredicateValue::Text(t)) = &a.predicate.kind
            && t.as_text() == Some("(")
        {
            return Err(ParseError {
                position: t.position,
                expected: "a regular expression".into(),
                found: "(".into(),
                hint: String::new(),
            });
        }
        Ok(Self { path: path_of(&a.query)?, count: !a.filters.is_empty(), kind: a.predicate.kind.clone() })
    }
    pub fn needs_body(&self) -> bool {
        true
    }
    pub fn evaluate(
        &self,
        v: &ResponseView<'_>,
        _t: &VariableTable,
        _c: &mut RenderContext<'_>,
    ) -> Result<(), CheckFailure> {
        let fail = || CheckFailure { actual: String::new(), expected: String::new() };
        let Some(path) = &self.path else { return Ok(()) };
        let mut value = find(v.body, path).ok_or_else(fail)?;
        if self.count {
            value = value.as_array().map(Vec::len).ok_or_else(fail)?.into();
        }
        let PredicateKind::Compare(op, expected) = &self.kind else { return Ok(()) };
        let ok = match (op, expected) {
            (PredicateOperator::Equal, PredicateValue::Text(t)) => value.as_str() == t.as_text(),
            (PredicateOperator::Equal, PredicateValue::Number(NumberLiteral::Integer(i))) => value.as_i64() == Some(*i),
            (PredicateOperator::Less, PredicateValue::Number(NumberLiteral::Integer(i))) => {
                value.as_i64().is_some_and(|v| v < *i)
            }
            _ => true,
        };
        if ok { Ok(()) } else { Err(fail()) }
    }
}

//! Pieces of a request: fixed bytes and templates.

use std::collections::BTreeMap;

use weir_hurl::{Assertion, Capture, Expression, ExpressionSource, ParseError, Template, TemplatePart, TextPosition};

use super::encoding::{EncodingError, PieceEncoding};
use super::problem;
use super::render_error::RenderError;
use super::request_template::RenderSource;
use crate::evaluate::{CompiledCapture, CompiledCheck, CompiledTemplate, VariableNames};

/// Fixed bytes and templates in the order in which they are sent. Neighbouring fixed bytes are one piece.
#[derive(Clone, Debug, Default)]
pub(super) struct PieceList {
    pieces: Vec<RequestPiece>,
}

#[derive(Clone, Debug)]
enum RequestPiece {
    Fixed(Vec<u8>),
    Dynamic { template: CompiledTemplate, encoding: PieceEncoding, position: TextPosition },
}

impl PieceList {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The bytes of a list without templates.
    pub(super) fn as_fixed(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [RequestPiece::Fixed(bytes)] => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn push_fixed(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            _ if bytes.is_empty() => {}
            Some(RequestPiece::Fixed(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(RequestPiece::Fixed(bytes.to_vec())),
        }
    }

    /// Appends the pieces of another list.
    pub(super) fn append(&mut self, list: Self) {
        for piece in list.pieces {
            match piece {
                RequestPiece::Fixed(bytes) => self.push_fixed(&bytes),
                dynamic @ RequestPiece::Dynamic { .. } => self.pieces.push(dynamic),
            }
        }
    }

    /// Appends a template. What is known when the plan is compiled becomes fixed bytes.
    pub(super) fn push(&mut self, template: &Template, encoding: PieceEncoding, compiler: &mut PieceCompiler<'_>) {
        let folded = compiler.folded(template);
        if let Some(text) = folded.as_text() {
            let mut bytes = text.as_bytes().to_vec();
            match encoding.encode_tail(&mut bytes, 0) {
                Ok(()) => self.push_fixed(&bytes),
                Err(error) => compiler.reject(template.position, &error),
            }
            return;
        }
        // Base64 of two parts is not the Base64 of the whole; a header's name is checked as a whole.
        let is_separable = !matches!(encoding, PieceEncoding::Base64 | PieceEncoding::HeaderName);
        if !is_separable {
            return self.push_dynamic(&folded, encoding, compiler);
        }
        for part in folded.parts {
            match part {
                TemplatePart::Text(text) => {
                    let text = Template { parts: vec![TemplatePart::Text(text)], position: template.position };
                    self.push(&text, encoding, compiler);
                }
                TemplatePart::Expression(expression) => self.push_expression(expression, encoding, compiler),
            }
        }
    }

    /// Appends a template whose expressions have an encoding each.
    pub(super) fn push_each(
        &mut self,
        template: Template,
        text_encoding: PieceEncoding,
        encodings: Vec<PieceEncoding>,
        compiler: &mut PieceCompiler<'_>,
    ) {
        let mut encodings = encodings.into_iter();
        for part in template.parts {
            match part {
                TemplatePart::Text(text) => {
                    let text = Template { parts: vec![TemplatePart::Text(text)], position: template.position };
                    self.push(&text, text_encoding, compiler);
                }
                TemplatePart::Expression(expression) => {
                    let encoding = encodings.next().unwrap_or(text_encoding);
                    self.push_expression(expression, encoding, compiler);
                }
            }
        }
    }

    /// Appends the value of an expression.
    pub(super) fn push_expression(
        &mut self,
        expression: Expression,
        encoding: PieceEncoding,
        compiler: &mut PieceCompiler<'_>,
    ) {
        let position = expression.position;
        let template = Template { parts: vec![TemplatePart::Expression(expression)], position };
        let folded = compiler.folded(&template);
        if folded.as_text().is_some() {
            return self.push(&folded, encoding, compiler);
        }
        self.push_dynamic(&folded, encoding, compiler);
    }

    fn push_dynamic(&mut self, template: &Template, encoding: PieceEncoding, compiler: &mut PieceCompiler<'_>) {
        let position = template.position;
        if let Some(template) = compiler.compile(template) {
            self.pieces.push(RequestPiece::Dynamic { template, encoding, position });
        }
    }

    /// Appends the bytes to `out`.
    pub(super) fn render(&self, source: &mut RenderSource<'_, '_>, out: &mut Vec<u8>) -> Result<(), RenderError> {
        for piece in &self.pieces {
            match piece {
                RequestPiece::Fixed(bytes) => out.extend_from_slice(bytes),
                RequestPiece::Dynamic { template, encoding, position } => {
                    let start = out.len();
                    source.render(template, *position, out)?;
                    encoding
                        .encode_tail(out, start)
                        .map_err(|error| RenderError::Encoding { error, position: *position })?;
                }
            }
        }
        Ok(())
    }
}

/// State of the compilation that pieces need.
#[derive(Debug)]
pub(super) struct PieceCompiler<'a> {
    /// Variables that never change, as text.
    pub(super) constants: &'a BTreeMap<String, String>,
    pub(super) names: &'a mut VariableNames,
    pub(super) errors: &'a mut Vec<ParseError>,
}

impl PieceCompiler<'_> {
    /// The template with the text of variables that never change.
    pub(super) fn folded(&self, template: &Template) -> Template {
        let mut folded = Template { parts: Vec::new(), position: template.position };
        for part in &template.parts {
            let text = match part {
                TemplatePart::Text(text) => Some(text),
                TemplatePart::Expression(expression) => self.constant(expression),
            };
            match (text, folded.parts.last_mut()) {
                (Some(text), Some(TemplatePart::Text(last))) => last.push_str(text),
                (Some(text), _) if text.is_empty() => {}
                (Some(text), _) => folded.parts.push(TemplatePart::Text(text.clone())),
                (None, _) => folded.parts.push(part.clone()),
            }
        }
        folded
    }

    /// Compiles a template; an error is added if it is invalid.
    pub(super) fn compile(&mut self, template: &Template) -> Option<CompiledTemplate> {
        let compiled = CompiledTemplate::compile(template, self.names);
        self.take(compiled)
    }

    pub(super) fn compile_capture(&mut self, capture: &Capture) -> Option<CompiledCapture> {
        let name = Template::text(self.fixed_text(&capture.name, "the name of a variable")?);
        let compiled = CompiledCapture::compile(&Capture { name, ..capture.clone() }, self.names);
        self.take(compiled)
    }

    pub(super) fn compile_check(&mut self, assertion: &Assertion) -> Option<CompiledCheck> {
        let compiled = CompiledCheck::compile(assertion, self.names);
        self.take(compiled)
    }

    fn take<T>(&mut self, compiled: Result<T, ParseError>) -> Option<T> {
        compiled.map_err(|error| self.errors.push(error)).ok()
    }

    fn constant(&self, expression: &Expression) -> Option<&String> {
        match &expression.source {
            ExpressionSource::Variable(name) if expression.filters.is_empty() => self.constants.get(name),
            _ => None,
        }
    }

    /// Text of a template that must not change; otherwise an error.
    pub(super) fn fixed_text(&mut self, template: &Template, what: &str) -> Option<String> {
        let folded = self.folded(template);
        if let Some(text) = folded.as_text() {
            return Some(text.to_owned());
        }
        let place = folded.expressions().next().map_or(template.position, |expression| expression.position);
        let found = folded.expressions().next().map_or_else(String::new, |expression| format!("'{expression}'"));
        self.errors.push(problem(place, format!("{what} without expressions of changing value"), found, ""));
        None
    }

    fn reject(&mut self, position: TextPosition, error: &EncodingError) {
        const OTHER: &str = "another character";
        let (expected, found) = match error {
            EncodingError::ControlInUrl => ("a URL without line breaks and control characters", OTHER),
            EncodingError::ControlInHeader => ("a header without line breaks and control characters", OTHER),
            EncodingError::HeaderName => ("the name of a header: letters, digits and '-'", OTHER),
            EncodingError::JsonValue => ("a JSON value; write quotes around a text", "a text"),
        };
        self.errors.push(problem(position, expected, found, ""));
    }
}

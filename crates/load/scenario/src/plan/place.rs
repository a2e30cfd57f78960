//! Places of values in templates that are one text: parameters in URLs and forms, strings and values in JSON.
//!
//! A value that a service or a row of data gives must not become more than a value. Where the text around an expression
//! shows what it is part of, its value is encoded for that; elsewhere it is inserted as it is, as in hurl.

use serde::de::IgnoredAny;
use weir_hurl::{Expression, FilterKind, PlainFilter, Template, TemplatePart};

use super::encoding::PieceEncoding;

/// Character before each text of a sequence.
const RECORD_SEPARATOR: char = '\u{1e}';

/// Use of a text body, which decides how its values are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextBodyUse {
    /// Body of a request, of any kind.
    Request,
    /// Body of a request whose Content-Type is that of a form.
    Form,
    /// Body that a response must have: values are as they are.
    Expected,
}

/// Encodings of a URL's expressions, in their order: those that are the value of a parameter cannot add another one. A
/// path may come from a variable with its query, as links do.
pub(super) fn in_url(url: &Template) -> Vec<PieceEncoding> {
    let mut place = ParameterPlace::default();
    let is_value = |place: &ParameterPlace| place.is_query && place.is_value;
    encodings(url, &mut place, ParameterPlace::push, |place, expression| match is_value(place) {
        true if !is_url_encoded(expression) => PieceEncoding::UrlValue,
        _ => PieceEncoding::Url,
    })
}

/// Encodings of the expressions in the name of a parameter: they cannot add another one.
pub(super) fn in_name(name: &Template, encoded: PieceEncoding) -> Vec<PieceEncoding> {
    let encoding = |expression| if is_url_encoded(expression) { encoded } else { PieceEncoding::Parameter };
    name.expressions().map(encoding).collect()
}

/// Encodings of the expressions in a body that is text: JSON, a form, or any text.
pub(super) fn in_text(body: &Template, usage: TextBodyUse) -> Vec<PieceEncoding> {
    if usage == TextBodyUse::Form {
        let mut place = ParameterPlace { is_query: true, is_value: false };
        return encodings(body, &mut place, ParameterPlace::push, |place, expression| match place.is_value {
            true if !is_url_encoded(expression) => PieceEncoding::Parameter,
            _ => PieceEncoding::Verbatim,
        });
    }
    let mut place = JsonPlace::default();
    let found = encodings(body, &mut place, JsonPlace::push, |place, _| {
        let in_string = place.in_string;
        place.skeleton.push(if in_string { 'x' } else { '0' });
        if in_string { PieceEncoding::JsonString } else { PieceEncoding::JsonValue }
    });
    let is_json = usage == TextBodyUse::Request && is_json_sequence(&place.skeleton.replace(RECORD_SEPARATOR, " "));
    if is_json { found } else { vec![PieceEncoding::Verbatim; found.len()] }
}

/// Whether a text is JSON: one value, or several, as lines of JSON (`application/x-ndjson`) and JSON text sequences (RFC 7464)
/// have them. Only objects and lists: a text may be a number or begin with a quote without being JSON.
fn is_json_sequence(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut is_any = false;
    loop {
        let rest = text.get(values.byte_offset()..).unwrap_or_default().trim_start();
        if rest.is_empty() {
            return is_any;
        }
        if !rest.starts_with(['{', '[']) || !matches!(values.next(), Some(Ok(_))) {
            return false;
        }
        is_any = true;
    }
}

/// Encoding of each expression, by the state after the text before it.
fn encodings<S>(
    template: &Template,
    state: &mut S,
    push: impl Fn(&mut S, &str),
    encoding: impl Fn(&mut S, &Expression) -> PieceEncoding,
) -> Vec<PieceEncoding> {
    let mut found = Vec::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => push(state, text),
            TemplatePart::Expression(expression) => found.push(encoding(state, expression)),
        }
    }
    found
}

/// Whether a filter has percent-encoded the value.
fn is_url_encoded(expression: &Expression) -> bool {
    let mut filters = expression.filters.iter();
    filters.any(|filter| matches!(filter.kind, FilterKind::Plain(PlainFilter::UrlEncode)))
}

/// Place in a query or form.
#[derive(Debug, Default)]
struct ParameterPlace {
    is_query: bool,
    is_value: bool,
}

impl ParameterPlace {
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '#' => *self = Self::default(),
                '?' => self.is_query = true,
                '&' => (self.is_query, self.is_value) = (true, false),
                '=' => self.is_value = self.is_query,
                _ => {}
            }
        }
    }
}

/// Place in a JSON text, and the text with a stand-in for each value.
#[derive(Debug, Default)]
struct JsonPlace {
    in_string: bool,
    is_escaped: bool,
    skeleton: String,
}

impl JsonPlace {
    fn push(&mut self, text: &str) {
        self.skeleton.push_str(text);
        for c in text.chars() {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' => self.is_escaped = self.in_string,
                '"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}

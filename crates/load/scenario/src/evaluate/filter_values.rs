//! Filters without arguments, and those of URLs.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{State, Token, Tokenizer};
use weir_base::markup;
use weir_base::percent;
use weir_base::percent::AsciiSet;
use weir_events::{EventReader, StreamFormat};
use weir_hurl::PlainFilter;

use super::filter::wrong_type;
use super::query::lossy;
use crate::value::{Value, hex};

/// Applies a filter; `None` if there is nothing to find.
pub(super) fn plain(filter: PlainFilter, value: Value) -> Result<Option<Value>, String> {
    use PlainFilter as P;
    let name = filter.as_str();
    Ok(Some(match (filter, value) {
        (P::Count, Value::List(list)) => integer(list.len()),
        (P::Count, Value::Bytes(bytes)) => integer(bytes.len()),
        (P::Count, Value::Nodes(texts)) => integer(texts.len()),
        (P::First, Value::List(list)) => list.into_iter().next().ok_or("the list is empty")?,
        (P::Last, Value::List(list)) => list.into_iter().next_back().ok_or("the list is empty")?,
        (P::ToInt, Value::Integer(n)) => Value::Integer(n),
        (P::ToInt, Value::Float(n)) => Value::Integer(n as i64),
        (P::ToInt, value @ Value::Number(_)) => match (value.as_i64(), value.as_f64()) {
            (Some(n), _) => Value::Integer(n),
            (None, Some(n)) => Value::Integer(n as i64),
            (None, None) => return Err(wrong_type(name, &value)),
        },
        (P::ToInt, Value::Text(text)) => match text.parse() {
            Ok(n) => Value::Integer(n),
            Err(_) => return Err(format!("'{text}' is not an integer")),
        },
        (P::ToFloat, Value::Text(text)) => match text.parse() {
            Ok(n) => Value::Float(n),
            Err(_) => return Err(format!("'{text}' is not a number")),
        },
        (P::ToFloat, value @ (Value::Integer(_) | Value::Float(_) | Value::Number(_))) => {
            Value::Float(value.as_f64().unwrap_or_default())
        }
        (P::ToString, value) => match value.template_text() {
            Some(text) => Value::Text(text),
            None => return Err(wrong_type(name, &value)),
        },
        (P::ToHex, Value::Bytes(bytes)) => Value::Text(hex(&bytes)),
        (P::Base64Encode, Value::Bytes(bytes)) => Value::Text(BASE64_STANDARD.encode(bytes)),
        (P::Base64UrlSafeEncode, Value::Bytes(bytes)) => Value::Text(BASE64_URL_SAFE_NO_PAD.encode(bytes)),
        (P::Base64Decode | P::Base64UrlSafeDecode, Value::Text(text)) => {
            let engine = if filter == P::Base64Decode { &BASE64_STANDARD_NO_PAD } else { &BASE64_URL_SAFE_NO_PAD };
            match engine.decode(text.trim_end_matches('=')) {
                Ok(bytes) => Value::Bytes(bytes),
                Err(_) => return Err(format!("'{text}' is no Base64")),
            }
        }
        (P::Utf8Encode, Value::Text(text)) => Value::Bytes(text.into_bytes()),
        (P::Utf8Decode, Value::Bytes(bytes)) => Value::Text(lossy(&bytes).into_owned()),
        (P::HtmlEscape, Value::Text(text)) => Value::Text(html_escaped(&text)),
        (P::HtmlUnescape, Value::Text(text)) => Value::Text(html_unescaped(&text)),
        (P::UrlEncode, Value::Text(text)) => Value::Text(percent::encoded(text.as_bytes(), URL_RESERVED)),
        (P::UrlDecode, Value::Text(text)) => Value::Text(lossy(&percent::decoded(text.as_bytes())).into_owned()),
        (P::Location, value) => value,
        (P::Sse, Value::Text(text)) => events(StreamFormat::Sse, text.as_bytes()),
        (P::Sse, Value::Bytes(bytes)) => events(StreamFormat::Sse, &bytes),
        (P::JsonLines, Value::Text(text)) => events(StreamFormat::JsonLines, text.as_bytes()),
        (P::JsonLines, Value::Bytes(bytes)) => events(StreamFormat::JsonLines, &bytes),
        (_, value) => return Err(wrong_type(name, &value)),
    }))
}

/// Data of the events of a body, in order.
fn events(format: StreamFormat, body: &[u8]) -> Value {
    let mut reader = EventReader::with_max_data(format, usize::MAX);
    let mut rest = body;
    let mut list = Vec::new();
    while let Some(event) = reader.next_event(&mut rest) {
        list.push(Value::Text(lossy(event.data).into_owned()));
    }
    list.extend(reader.end().map(|event| Value::Text(lossy(event.data).into_owned())));
    Value::List(list)
}

fn integer(n: usize) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Value of a parameter of a URL.
pub(super) fn query_param(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    let query = query.split('#').next().unwrap_or_default();
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let decoded = |text: &str| lossy(&percent::form_decoded(text.as_bytes())).into_owned();
    pairs.find(|(given, _)| decoded(given) == name).map(|(_, value)| decoded(value))
}

/// Characters that `urlEncode` escapes.
const URL_RESERVED: &AsciiSet = &percent::RESERVED.remove(b'/');

/// Text with the character references of HTML replaced, also those without a semicolon.
fn html_unescaped(text: &str) -> String {
    let mut tokenizer = Tokenizer::new_with_emitter(text, DefaultEmitter::default());
    // In this state there are references, but no tags.
    tokenizer.set_state(State::RcData);
    let tokens = tokenizer.filter_map(|token| match token {
        Ok(Token::String(part)) => Some(lossy(&part).into_owned()),
        _ => None,
    });
    tokens.collect()
}

fn html_escaped(text: &str) -> String {
    markup::escaped(text).replace('\'', "&#x27;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_has_two_digits() {
        assert_eq!(query_param("/a?b%2B=1+2%+f%zz#c", "b+").as_deref(), Some("1 2% f%zz"));
        let decoded = |text: &str| plain(PlainFilter::UrlDecode, Value::Text(text.to_owned())).ok().flatten();
        assert_eq!(decoded("a+%41%+f"), Some(Value::Text("a+A%+f".to_owned())));
    }
}

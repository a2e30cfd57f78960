//! One method of a service.

use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::value::RawValue;

use super::messages::{push_message, read_messages};
use super::nesting::is_shallow;

/// Method of a service.
#[derive(Clone, Debug)]
pub struct GrpcMethod {
    descriptor: MethodDescriptor,
}

/// Number of messages of a method's requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// One message each way.
    Unary,
    /// One message, and several in the response.
    ServerStream,
    /// Several messages, and one in the response.
    ClientStream,
    /// Several messages each way.
    Bidirectional,
}

impl MethodKind {
    /// Whether a request has several messages.
    pub fn has_request_stream(self) -> bool {
        matches!(self, Self::ClientStream | Self::Bidirectional)
    }

    /// Whether a response has several messages.
    pub fn has_response_stream(self) -> bool {
        matches!(self, Self::ServerStream | Self::Bidirectional)
    }
}

impl GrpcMethod {
    pub(super) fn new(descriptor: MethodDescriptor) -> Self {
        Self { descriptor }
    }

    /// Path of its requests: `/package.Service/Method`.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.descriptor.parent_service().full_name(), self.descriptor.name())
    }

    /// Number of messages each way.
    pub fn kind(&self) -> MethodKind {
        match (self.descriptor.is_client_streaming(), self.descriptor.is_server_streaming()) {
            (false, false) => MethodKind::Unary,
            (false, true) => MethodKind::ServerStream,
            (true, false) => MethodKind::ClientStream,
            (true, true) => MethodKind::Bidirectional,
        }
    }

    /// Body of a request from JSON: one message, or for a stream of them one JSON value after the other or an array. No
    /// text is an empty message. `compresses`: by gzip.
    ///
    /// # Errors
    /// One line: why the JSON is not of the message's type, with line and column.
    pub fn encode(&self, json: &str, compresses: bool) -> Result<Vec<u8>, String> {
        // A byte order mark, which some editors write and none shows.
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let input = self.descriptor.input();
        let mut body = Vec::new();
        let pieces = pieces(json, self.descriptor.is_client_streaming())?;
        let is_empty = pieces.is_empty() && !self.descriptor.is_client_streaming();
        for piece in if is_empty { vec!["{}"] } else { pieces } {
            let message = read_message(&input, json, piece)?;
            push_message(&message.encode_to_vec(), compresses, &mut body)?;
        }
        Ok(body)
    }

    /// Messages of a response's body as JSON, one line each. `encoding` is the value of its `grpc-encoding`.
    ///
    /// # Errors
    /// One line: what is wrong with the body.
    pub fn decode(&self, body: &[u8], encoding: &[u8]) -> Result<String, String> {
        decode_as(&self.descriptor.output(), body, encoding, true)
    }

    /// Messages of a response's body as JSON, one line each, with the fields that have their defaults.
    ///
    /// # Errors
    /// One line: what is wrong with the body.
    pub fn decode_whole(&self, body: &[u8], encoding: &[u8]) -> Result<String, String> {
        decode_as(&self.descriptor.output(), body, encoding, false)
    }

    /// Messages of a request's body as JSON, one line each.
    ///
    /// # Errors
    /// One line: what is wrong with the body.
    pub fn decode_request(&self, body: &[u8]) -> Result<String, String> {
        decode_as(&self.descriptor.input(), body, b"gzip", true)
    }
}

fn decode_as(
    descriptor: &MessageDescriptor,
    body: &[u8],
    encoding: &[u8],
    skips_defaults: bool,
) -> Result<String, String> {
    let mut text = Vec::new();
    read_messages(body, encoding, |bytes| {
        let message = DynamicMessage::decode(descriptor.clone(), bytes)
            .map_err(|error| format!("a message is not a {}: {error}", descriptor.full_name()))?;
        if !is_shallow(&message) {
            return Err(format!("a message of {} has more than 100 levels of messages", descriptor.full_name()));
        }
        if !text.is_empty() {
            text.push(b'\n');
        }
        let mut json = serde_json::Serializer::new(&mut text);
        let options = SerializeOptions::new().skip_default_fields(skips_defaults);
        message
            .serialize_with_options(&mut json, &options)
            .map_err(|error| format!("a message of {} has no JSON: {error}", descriptor.full_name()))
    })?;
    String::from_utf8(text).map_err(|_| "a text of a message is not UTF-8".to_owned())
}

/// Values of a text of JSON: the elements of an array if `is_stream`, and otherwise one after the other.
fn pieces(json: &str, is_stream: bool) -> Result<Vec<&str>, String> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<&RawValue>();
    let mut pieces = Vec::new();
    for value in &mut values {
        let value = value.map_err(|error| format!("the message is not JSON: {error}"))?.get();
        if is_stream && value.starts_with('[') {
            let elements: Vec<&RawValue> = serde_json::from_str(value).map_err(|error| error.to_string())?;
            pieces.extend(elements.into_iter().map(RawValue::get));
        } else {
            pieces.push(value);
        }
    }
    match pieces.as_slice() {
        [_, second, ..] if !is_stream => {
            let (line, column) = position(json, second, (1, 1));
            Err(format!("the method takes one message; a second one begins at line {line} column {column}"))
        }
        _ => Ok(pieces),
    }
}

/// Message of one value, `piece`, of the text `json`.
fn read_message(descriptor: &MessageDescriptor, json: &str, piece: &str) -> Result<DynamicMessage, String> {
    let mut values = serde_json::Deserializer::from_str(piece);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    DynamicMessage::deserialize_with_options(descriptor.clone(), &mut values, &options).map_err(|error| {
        let (line, column) = position(json, piece, (error.line().max(1), error.column().max(1)));
        let text = error.to_string();
        let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
        let words = in_words_of_json(words.trim_end_matches('.'));
        format!("not a {}: {words}, at line {line} column {column}", descriptor.full_name())
    })
}

/// Words of the reader about a wrong type, in those of JSON.
fn in_words_of_json(words: &str) -> String {
    let types = words.strip_prefix("invalid type: ").and_then(|types| types.split_once(", expected "));
    let Some((found, expected)) = types else { return words.to_owned() };
    let in_json = |name| match name {
        "map" | "a map" => "an object",
        "sequence" | "a sequence" => "an array",
        other => other,
    };
    format!("invalid type: {}, expected {}", in_json(found), in_json(expected))
}

/// Position within `json` of a position within `piece`, which is a part of it; both from 1.
fn position(json: &str, piece: &str, (line, column): (usize, usize)) -> (usize, usize) {
    let offset = (piece.as_ptr() as usize).wrapping_sub(json.as_ptr() as usize);
    let before = json.get(..offset).unwrap_or_default();
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    let lines = before.matches('\n').count();
    (lines + line, if line == 1 { last_line.len() + column } else { column })
}

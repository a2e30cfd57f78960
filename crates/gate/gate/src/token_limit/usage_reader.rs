//! Reads the tokens that a response of a language model has used, as its bytes pass by.
//!
//! All APIs have an object under the key `usage`: at the end of a JSON body, in the last event of a stream (OpenAI, with
//! `stream_options.include_usage`), or in parts in its first and last ones (Anthropic). In JSON a quote within a text is
//! escaped, so `"usage"` followed by an object is that key and no text. Nothing else is parsed, and nothing is kept.

use serde_json::{Map, Value};

const KEY: &[u8] = b"\"usage\"";
/// Maximum length of an object that is read; those of the APIs have some hundred bytes.
const MAX_OBJECT_BYTES: usize = 4096;
/// Maximum number of tokens that is believed: ten times the longest context of a model. A larger one would lock out its
/// caller for longer than anybody waits.
const MAX_TOKENS: u64 = 100_000_000;

/// Tokens of a response so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReportedUsage {
    input: Option<u64>,
    output: Option<u64>,
    total: Option<u64>,
}

#[derive(Debug, Default)]
enum Place {
    /// Within the key, of which this many bytes have come.
    #[default]
    Elsewhere,
    Key(usize),
    /// Behind the key.
    Colon,
    /// Behind its colon.
    Value,
    Object(ObjectText),
}

/// Text of an object up to its end.
#[derive(Debug, Default)]
struct ObjectText {
    bytes: Vec<u8>,
    depth: u32,
    is_text: bool,
    is_escaped: bool,
}

/// Reader of one response.
#[derive(Debug, Default)]
pub(crate) struct UsageReader {
    place: Place,
    usage: ReportedUsage,
}

impl UsageReader {
    /// Tokens of input and output, if the response has said so.
    pub(crate) fn total(&self) -> Option<u64> {
        let ReportedUsage { input, output, total } = self.usage;
        let has_parts = input.is_some() || output.is_some();
        let sum = has_parts.then(|| input.unwrap_or_default() + output.unwrap_or_default());
        // The larger one: arguments of a tool are objects of the model, and may have a total of their own.
        total.max(sum)
    }

    /// Reads on.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if matches!(self.place, Place::Elsewhere) {
                // Most bytes are text of the model.
                let Some(at) = rest.iter().position(|byte| *byte == b'"') else { return };
                rest = &rest[at..];
            }
            self.read_byte(rest[0]);
            rest = &rest[1..];
        }
    }

    fn read_byte(&mut self, byte: u8) {
        let is_space = byte.is_ascii_whitespace();
        self.place = match std::mem::take(&mut self.place) {
            Place::Elsewhere if byte == KEY[0] => Place::Key(1),
            Place::Key(matched) if byte == KEY[matched] && matched + 1 == KEY.len() => Place::Colon,
            Place::Key(matched) if byte == KEY[matched] => Place::Key(matched + 1),
            Place::Key(_) if byte == KEY[0] => Place::Key(1),
            Place::Colon if is_space => Place::Colon,
            Place::Colon if byte == b':' => Place::Value,
            // The end of one text may be the beginning of another.
            Place::Colon if byte == KEY[0] => Place::Key(1),
            Place::Value if is_space => Place::Value,
            Place::Value if byte == b'{' => {
                Place::Object(ObjectText { bytes: vec![byte], depth: 1, ..ObjectText::default() })
            }
            Place::Value if byte == KEY[0] => Place::Key(1),
            Place::Object(mut object) => {
                let is_complete = object.push(byte);
                if is_complete {
                    if let Ok(Value::Object(fields)) = serde_json::from_slice(&object.bytes) {
                        self.usage.add(&fields);
                    }
                    Place::Elsewhere
                } else if object.bytes.len() < MAX_OBJECT_BYTES {
                    Place::Object(object)
                } else {
                    Place::Elsewhere
                }
            }
            _ => Place::Elsewhere,
        };
    }
}

impl ObjectText {
    /// Adds a byte; true with the last one.
    fn push(&mut self, byte: u8) -> bool {
        self.bytes.push(byte);
        if self.is_text {
            self.is_text = self.is_escaped || byte != b'"';
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return false;
        }
        match byte {
            b'"' => self.is_text = true,
            b'{' => self.depth += 1,
            b'}' => self.depth -= 1,
            _ => {}
        }
        self.depth == 0
    }
}

impl ReportedUsage {
    /// Adds what an object says. Later objects of a stream have larger counts, or other ones.
    fn add(&mut self, fields: &Map<String, Value>) {
        let number = |key: &str| fields.get(key).and_then(Value::as_u64).filter(|tokens| *tokens <= MAX_TOKENS);
        let input = number("prompt_tokens").or_else(|| {
            // Anthropic does not count what is written to a cache as input.
            let written = number("cache_creation_input_tokens").unwrap_or_default();
            number("input_tokens").map(|input| input + written)
        });
        self.input = self.input.max(input);
        self.output = self.output.max(number("completion_tokens").or_else(|| number("output_tokens")));
        self.total = self.total.max(number("total_tokens"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn total(parts: &[&[u8]]) -> Option<u64> {
        let mut reader = UsageReader::default();
        parts.iter().for_each(|part| reader.read(part));
        reader.total()
    }

    #[test]
    fn bodies_and_streams_of_the_apis_are_read() {
        let openai = json!({"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 9,
            "completion_tokens": 12, "total_tokens": 21, "completion_tokens_details": {"reasoning_tokens": 0}}});
        assert_eq!(total(&[openai.to_string().as_bytes()]), Some(21));
        let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}}\n\ndata: [DONE]\n\n";
        assert_eq!(total(&[stream]), Some(11));
        let anthropic = b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\
            \"cache_creation_input_tokens\":5,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\
            \"usage\":{\"output_tokens\":15}}\n\n";
        assert_eq!(total(&[anthropic]), Some(45));
        let responses = b"event: response.completed\ndata: {\"response\":{\"usage\" : {\"input_tokens\":7,\"input_tokens_details\":\
            {\"cached_tokens\":0},\"output_tokens\":3,\"total_tokens\":10}}}\n\n";
        assert_eq!(total(&[responses]), Some(10));
        let embeddings = b"{\"data\":[],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":8}}";
        assert_eq!(total(&[embeddings]), Some(8));
    }

    #[test]
    fn text_of_a_model_is_no_usage() {
        let text = json!({"content": "{\"usage\":{\"total_tokens\":1}}", "type": "usage", "a": ["usage", {"b": 1}]});
        assert_eq!(total(&[text.to_string().as_bytes()]), None);
        for broken in
            ["{\"usage\":{\"total_tokens\":", "\"usage\":{}", "\"usage\":{\"total_tokens\":-1}", "\"usage\":7"]
        {
            assert_eq!(total(&[broken.as_bytes()]), None, "{broken}");
        }
        let long = format!("\"usage\":{{\"x\":\"{}\",\"total_tokens\":5}}", "x".repeat(MAX_OBJECT_BYTES));
        assert_eq!(total(&[long.as_bytes()]), None);
        let after = format!("{long},\"usage\":{{\"total_tokens\":6}}");
        assert_eq!(total(&[after.as_bytes()]), Some(6));
    }

    #[test]
    fn numbers_that_cannot_be_are_none() {
        for (usage, expected) in [
            (r#"{"total_tokens":18446744073709551615}"#, None),
            (r#"{"total_tokens":18446744073709551616}"#, None),
            (r#"{"total_tokens":1e400}"#, None),
            (r#"{"total_tokens":100000001,"prompt_tokens":3}"#, Some(3)),
            (r#"{"total_tokens":100000000}"#, Some(100_000_000)),
            (r#"{"total_tokens":-7,"prompt_tokens":-1,"completion_tokens":4}"#, Some(4)),
            (r#"{"total_tokens":21.5,"prompt_tokens":"9"}"#, None),
            (r#"{"total_tokens":[1],"completion_tokens":{"total_tokens":2}}"#, None),
            (r#"{"total_tokens":1,"prompt_tokens":20,"completion_tokens":30}"#, Some(50)),
            ("{}", None),
        ] {
            assert_eq!(total(&[format!("{{\"usage\":{usage}}}").as_bytes()]), expected, "{usage}");
        }
    }

    #[test]
    fn arguments_of_a_tool_do_not_lower_what_was_used() {
        let body = json!({"content": [{"type": "tool_use", "input": {"usage": {"total_tokens": 1, "input_tokens": 0}}}],
            "usage": {"input_tokens": 20, "output_tokens": 30}});
        assert_eq!(total(&[body.to_string().as_bytes()]), Some(50));
    }

    /// A body with the key at some places, and any text beside it.
    fn body() -> impl Strategy<Value = (Value, Option<u64>)> {
        let text =
            prop_oneof!["[ -~]{0,30}", Just("\"usage\":{\"total_tokens\":9}".to_owned()), Just("usage".to_owned())];
        (prop::collection::vec(text, 0..6), prop::option::of(0_u64..1_000_000)).prop_map(|(texts, total)| {
            let mut body = json!({"choices": texts, "usages": 1});
            if let Some(total) = total {
                body["usage"] = json!({"total_tokens": total, "details": {"text": "}\\\"{"}});
            }
            (body, total)
        })
    }

    proptest! {
        /// However a body is cut into pieces, its usage is that of its tree.
        #[test]
        fn pieces_do_not_matter((body, expected) in body(), is_pretty in any::<bool>(), cuts in prop::collection::vec(0_usize..400, 0..8)) {
            let text = if is_pretty { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) };
            let text = text.expect("JSON");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(total(&parts), expected);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = total(&[b"\"usage\":{", &bytes]);
        }
    }
}

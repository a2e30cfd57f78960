//! Bodies of responses, to the byte those of the reference workload: JSON as Python's Flask writes it, with sorted
//! keys, no spaces, non-ASCII characters escaped, and a newline at the end.

use std::fmt::Write;

use http::{Response, StatusCode};

use crate::responses::{CONTENT_TYPE_JSON, response};
use weir_server::ResponseBody;

/// Constant response.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedResponse {
    status: StatusCode,
    body: &'static str,
}

pub(super) const INVALID_KEY: FixedResponse = FixedResponse {
    status: StatusCode::UNAUTHORIZED,
    body: "{\"error_msg\":\"invalid api key\",\"status\":\"error\"}\n",
};
pub(super) const KEY_BLOCKED: FixedResponse = FixedResponse {
    status: StatusCode::TOO_MANY_REQUESTS,
    body: "{\"error_msg\":\"too many rate limit errors: blocked\",\"status\":\"error\"}\n",
};
pub(super) const LIMIT_EXCEEDED: FixedResponse = FixedResponse {
    status: StatusCode::TOO_MANY_REQUESTS,
    body: "{\"error_msg\":\"exceeded rate limit\",\"status\":\"error\"}\n",
};
pub(super) const INVALID_NONCE: FixedResponse =
    FixedResponse { status: StatusCode::BAD_REQUEST, body: "{\"error_msg\":\"invalid nonce\",\"status\":\"error\"}\n" };
/// Not part of the reference workload, whose requests all have weight 1.
pub(super) const INVALID_WEIGHT: FixedResponse = FixedResponse {
    status: StatusCode::BAD_REQUEST,
    body: "{\"error_msg\":\"invalid weight\",\"status\":\"error\"}\n",
};

impl FixedResponse {
    pub(super) fn response(self) -> Response<ResponseBody> {
        response(self.status, CONTENT_TYPE_JSON, self.body)
    }
}

/// 200, with the request's `req_id`, or null without one.
pub(super) fn accepted_response(req_id: Option<&str>) -> Response<ResponseBody> {
    let mut body = String::from("{\"req_id\":");
    match req_id {
        Some(text) => write_string(&mut body, text),
        None => body.push_str("null"),
    }
    body.push_str(",\"status\":\"OK\"}\n");
    response(StatusCode::OK, CONTENT_TYPE_JSON, body)
}

/// Writes a JSON string as Python's `json.dumps` does.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::write_string;

    /// Expected values are the output of `json.dumps(text)` of Python 3.
    #[test]
    fn strings_are_escaped_as_python_does() {
        for (text, json) in [
            ("", r#""""#),
            ("a/b <c>&", r#""a/b <c>&""#),
            ("\"\\\n\r\t\u{8}\u{c}", r#""\"\\\n\r\t\b\f""#),
            ("\u{0}\u{1f}\u{7f}", r#""\u0000\u001f\u007f""#),
            ("é€", r#""\u00e9\u20ac""#),
            ("😀", r#""\ud83d\ude00""#),
        ] {
            let mut out = String::new();
            write_string(&mut out, text);
            assert_eq!(out, json);
            assert_eq!(serde_json::from_str::<String>(&out).ok().as_deref(), Some(text));
        }
    }
}

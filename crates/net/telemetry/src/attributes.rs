//! Names and attributes of spans, with bounded lengths.

use http::Method;

use super::span::AttributeValue;

/// Maximum length of a text from outside in a span, so that a queue of spans is bounded in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;

/// Name and first attributes of a span. Unknown methods are named `HTTP`, so that the number of names is bounded.
pub fn span_name(method: &Method) -> (&'static str, Vec<(&'static str, AttributeValue)>) {
    // Capacity for all attributes of a span.
    let mut attributes = Vec::with_capacity(10);
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    match known.into_iter().find(|known| *known == method.as_str()) {
        Some(known) => {
            attributes.push(("http.request.method", known.into()));
            (known, attributes)
        }
        None => {
            attributes.push(("http.request.method", "_OTHER".into()));
            attributes.push(("http.request.method_original", truncate(method.as_str()).to_owned().into()));
            ("HTTP", attributes)
        }
    }
}

/// Host and port, from `host`, `host:port` or `[::1]:port`.
pub fn push_server_address(attributes: &mut Vec<(&'static str, AttributeValue)>, host: &str) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse::<u16>().ok()),
        _ => (host, None),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if !name.is_empty() {
        attributes.push(("server.address", truncate(name).to_owned().into()));
    }
    if let Some(port) = port {
        attributes.push(("server.port", port.into()));
    }
}

/// The text, cut to [`MAX_TEXT_BYTES`].
pub fn truncate(text: &str) -> &str {
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

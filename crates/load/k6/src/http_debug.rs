//! PURE. Requests and responses in the log of a script: `httpDebug` of the options.

/// What is written of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpDebug {
    /// Their heads.
    Heads,
    /// Their heads and bodies.
    Full,
}

impl HttpDebug {
    /// Text of a request, by its bytes as HTTP/1.1.
    pub(crate) fn request(self, bytes: &[u8]) -> String {
        let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let (head, body) = bytes.split_at(end);
        self.text("Request", head, body)
    }

    /// Text of a response, whose body is as it came.
    pub(crate) fn response(self, head: &[u8], body: &[u8]) -> String {
        self.text("Response", head, body)
    }

    fn text(self, title: &str, head: &[u8], body: &[u8]) -> String {
        let head = String::from_utf8_lossy(head).replace("\r\n", "\n");
        let body = if self == Self::Full { String::from_utf8_lossy(body) } else { "".into() };
        let text = format!("{title}:\n{}\n", head.trim_end());
        if body.is_empty() { text } else { format!("{text}\n{body}\n") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_shown_without_bodies_unless_both_are_wanted() {
        let bytes = b"POST / HTTP/1.1\r\nHost: a\r\n\r\nb\xff";
        assert_eq!(HttpDebug::Heads.request(bytes), "Request:\nPOST / HTTP/1.1\nHost: a\n");
        assert_eq!(HttpDebug::Full.request(bytes), "Request:\nPOST / HTTP/1.1\nHost: a\n\nb\u{fffd}\n");
        assert_eq!(HttpDebug::Full.request(b"GET / HTTP/1.1"), "Request:\nGET / HTTP/1.1\n");
    }
}

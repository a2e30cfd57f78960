//! Encoding of requests: built once before the run, written as they are.

use std::fmt;

use weir_request::request_framing::{CallerFraming, CallerHeader, FramingError};
use weir_request::secret_mask::shown_header;

/// An encoded request, and what is needed to decode its response.
#[derive(Clone, Debug)]
pub struct WireRequest {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Whether the response has no body in any case (HEAD).
    pub bodyless: bool,
    /// Weight among the plan's requests.
    pub weight: f64,
}

/// Reason why a request cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// Not a method: letters, digits and some punctuation only.
    Method(String),
    /// Not `Name: value`, or with characters that a header cannot have.
    Header(String),
    /// Headers that do not frame the body.
    Framing(FramingError),
}

impl From<FramingError> for RequestError {
    fn from(error: FramingError) -> Self {
        Self::Framing(error)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(method) => write!(f, "'{method}' is not an HTTP method"),
            Self::Framing(error) => error.fmt(f),
            Self::Header(header) => write!(f, "invalid header '{header}'; write it as \"Name: value\""),
        }
    }
}

/// A header as given: name and value; an empty value removes a default header, as in curl.
pub type HeaderLine<'a> = (&'a str, &'a str);

impl WireRequest {
    /// Builds the bytes. `headers` are lines `Name: value`; they replace the defaults (Host, User-Agent, Accept,
    /// Content-Length, Connection) of the same name.
    ///
    /// # Errors
    /// If the method or a header is invalid.
    pub fn build(
        method: &str,
        path: &str,
        host: &str,
        headers: &[String],
        body: &[u8],
        keep_alive: bool,
    ) -> Result<Self, RequestError> {
        let method_ok = http::Method::from_bytes(method.as_bytes()).is_ok();
        if !method_ok {
            return Err(RequestError::Method(method.escape_debug().to_string()));
        }
        let given = headers.iter().map(|line| parse_header(line)).collect::<Result<Vec<HeaderLine<'_>>, _>>()?;
        let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
        let length = body.len().to_string();
        let mut framing = CallerFraming::default();
        let mut others: Vec<HeaderLine<'_>> = Vec::with_capacity(given.len());
        for (name, value) in &given {
            if framing.take(name.as_bytes(), value.as_bytes())? == CallerHeader::Other {
                others.push((name, value));
            }
        }
        let mut defaults: Vec<HeaderLine<'_>> = vec![("Host", host), ("User-Agent", agent), ("Accept", "*/*")];
        if framing.has_length(method, body.len() as u64)? {
            defaults.push(("Content-Length", &length));
        }
        if !keep_alive {
            defaults.push(("Connection", "close"));
        }
        let is_given = |name: &str| others.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let all =
            defaults.iter().filter(|(name, _)| !is_given(name)).chain(&others).filter(|(_, value)| !value.is_empty());
        let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        for (name, value) in all {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Ok(Self { bytes, bodyless: method == "HEAD", weight: 1.0 })
    }
}

/// Name and value of a line `Name: value`, without the spaces around them.
///
/// # Errors
/// If the line is not a header.
pub fn parse_header(line: &str) -> Result<HeaderLine<'_>, RequestError> {
    let bad = || RequestError::Header(shown_header(line).escape_debug().to_string());
    let (name, value) = line.split_once(':').ok_or_else(bad)?;
    let (name, value) = (name.trim(), value.trim());
    http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    http::HeaderValue::from_str(value).map_err(|_| bad())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(method: &str, headers: &[&str], body: &str, keep_alive: bool) -> String {
        let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
        let request = WireRequest::build(method, "/a?b", "h:1", &headers, body.as_bytes(), keep_alive).expect("valid");
        String::from_utf8(request.bytes).expect("ascii")
    }

    #[test]
    fn defaults_are_there_unless_given() {
        let agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            text("GET", &[], "", true),
            format!("GET /a?b HTTP/1.1\r\nHost: h:1\r\nUser-Agent: {agent}\r\nAccept: */*\r\n\r\n")
        );
        assert_eq!(
            text("POST", &["host: other", "User-Agent:", "X-Y:  z "], "hey", false),
            "POST /a?b HTTP/1.1\r\nAccept: */*\r\nContent-Length: 3\r\nConnection: close\r\nhost: other\r\nX-Y: z\r\n\r\nhey"
        );
        assert!(text("POST", &[], "", true).contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn a_body_has_one_framing_which_is_its_length() {
        assert!(text("POST", &["content-length: 3"], "hey", true).contains("\r\nContent-Length: 3\r\n"));
        assert!(!text("POST", &["Content-Length:"], "", true).contains("Content-Length"));
        for header in ["Transfer-Encoding: chunked", "Content-Length: 4", "Content-Length:", "content-length: 3, 3"] {
            let built = WireRequest::build("POST", "/", "h", &[header.to_owned()], b"hey", true);
            assert!(matches!(built, Err(RequestError::Framing(_))), "{header}");
        }
    }

    #[test]
    fn nothing_is_smuggled_into_the_head() {
        let build = |method: &str, header: &str| WireRequest::build(method, "/", "h", &[header.to_owned()], b"", true);
        assert!(matches!(build("GE T", "A: b"), Err(RequestError::Method(_))));
        for header in ["A: b\r\nC: d", "no colon", "Na me: x", ": x"] {
            assert!(matches!(build("GET", header), Err(RequestError::Header(_))), "{header:?}");
        }
    }
}

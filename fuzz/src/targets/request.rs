//! Requests: an accepted one is exactly one request, without injected headers or lines.
//!
//! Input: URL, method, any number of headers, body; a byte 0xff (which is in no text) between them.

use weir_net::target::Target;
use weir_net::wire::WireRequest;

crate::target!(|data: &[u8]| {
    let mut parts: Vec<&[u8]> = data.split(|byte| *byte == 0xff).collect();
    let body = parts.pop().unwrap_or_default();
    let Ok(texts) = parts.iter().map(|part| str::from_utf8(part)).collect::<Result<Vec<_>, _>>() else { return };
    let [url, method, headers @ ..] = texts.as_slice() else { return };
    let Ok(target) = Target::parse(url) else { return };
    let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
    for keep_alive in [true, false] {
        match WireRequest::build(method, &target.path, &target.host_header(), &headers, body, keep_alive) {
            Ok(request) => check(&request, method, &target.path, &headers, body),
            Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
        }
    }
});

fn check(request: &WireRequest, method: &str, path: &str, given: &[String], body: &[u8]) {
    let shown = request.bytes.escape_ascii();
    let mut slots = [httparse::EMPTY_HEADER; 256];
    let mut parsed = httparse::Request::new(&mut slots);
    let length = match parsed.parse(&request.bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Err(httparse::Error::TooManyHeaders) => return,
        other => panic!("{other:?}: {shown}"),
    };
    assert_eq!((parsed.method, parsed.path, parsed.version), (Some(method), Some(path), Some(1)), "{shown}");
    assert_eq!(&request.bytes[length..], body, "{shown}");
    // One line for the request, one for each header, one empty; every CR and LF ends one of them.
    let (head, lines) = (&request.bytes[..length], parsed.headers.len() + 2);
    let count = |byte: u8| head.iter().filter(|b| **b == byte).count();
    assert_eq!((count(b'\r'), count(b'\n')), (lines, lines), "{shown}");
    // Each is one of weir's own or one that was asked for.
    for header in parsed.headers.iter() {
        let own = ["Host", "User-Agent", "Accept", "Content-Length", "Connection"].contains(&header.name);
        let asked = |line: &String| line.split_once(':').is_some_and(|(name, _)| name.trim() == header.name);
        assert!(own || given.iter().any(asked), "{shown}");
    }
}

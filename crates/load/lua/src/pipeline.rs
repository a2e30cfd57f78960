//! Requests in one string: their number, ends and methods.

use weir_load::program::PipelinedRequest;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 128;
/// Maximum number of requests in one string.
const MAX_REQUESTS: usize = 1000;

/// Finds the requests in `bytes`, which replace those of `found`.
///
/// # Errors
/// Reason why the bytes are not whole requests, with the line where it was found.
pub(crate) fn split(bytes: &[u8], found: &mut Vec<PipelinedRequest>) -> Result<(), String> {
    // Most scripts return one request without a body, and its head was checked with the first one.
    if is_one_head(bytes) {
        found.clear();
        found.push(PipelinedRequest { end: bytes.len(), is_bodyless: bytes.starts_with(b"HEAD ") });
        return Ok(());
    }
    parse(bytes, found)
}

/// Finds the requests in `bytes` and checks their heads.
///
/// # Errors
/// As [`split`].
pub(crate) fn parse(bytes: &[u8], found: &mut Vec<PipelinedRequest>) -> Result<(), String> {
    found.clear();
    let mut start = 0;
    while start < bytes.len() {
        let (length, is_bodyless) = request(&bytes[start..]).map_err(|(why, at)| {
            let line = bytes[..start + at].iter().filter(|byte| **byte == b'\n').count() + 1;
            format!("{why} in line {line} of the request")
        })?;
        start += length;
        found.push(PipelinedRequest { end: start, is_bodyless });
        if found.len() > MAX_REQUESTS {
            return Err(format!("more than {MAX_REQUESTS} requests in one string"));
        }
    }
    if found.is_empty() { Err("an empty string instead of a request".to_owned()) } else { Ok(()) }
}

/// Whether the bytes are one head that names no body.
fn is_one_head(bytes: &[u8]) -> bool {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        let line = &bytes[start..end];
        start = end + 1;
        match line.first() {
            None => return false,
            Some(b'\r') => return line.len() == 1 && start == bytes.len(),
            Some(b'C' | b'c') if is_named(line, b"content-length") => return false,
            Some(b'T' | b't') if is_named(line, b"transfer-encoding") => return false,
            Some(_) => {}
        }
    }
    false
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Length of the first request, and whether its response has no body; or the reason and the offset of a mistake.
fn request(bytes: &[u8]) -> Result<(usize, bool), (String, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => {
            return Err(("an incomplete head (an empty line ends it)".to_owned(), bytes.len()));
        }
        Err(error) => {
            let line = bytes.iter().position(|byte| *byte == b'\n').filter(|_| parsed.path.is_some());
            return Err((format!("an invalid head ({error})"), line.map_or(0, |at| at + 1)));
        }
    };
    let is_bodyless = parsed.method == Some("HEAD");
    let value = |name: &str| {
        let mut all = parsed.headers.iter();
        all.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let body = &bytes[head..];
    let count = |name: &str| parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    if count("transfer-encoding") + count("content-length") > 1 {
        // One part of a service would read another end of it than another part (RFC 9112, 6.1).
        return Err(("two framings (Transfer-Encoding, Content-Length)".to_owned(), 0));
    }
    if let Some(coding) = value("transfer-encoding")
        && !coding.trim_ascii().eq_ignore_ascii_case(b"chunked")
    {
        return Err(("a Transfer-Encoding that is not chunked".to_owned(), 0));
    }
    if value("transfer-encoding").is_some_and(|coding| coding.to_ascii_lowercase().ends_with(b"chunked")) {
        let length = chunked_length(body).ok_or(("an incomplete chunked body".to_owned(), bytes.len()))?;
        return Ok((head + length, is_bodyless));
    }
    let length = match value("content-length") {
        None => 0,
        Some(text) => {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<usize>().ok());
            number.ok_or(("an invalid Content-Length".to_owned(), 0))?
        }
    };
    if body.len() < length {
        let missing = length - body.len();
        return Err((format!("a body that is {missing} bytes shorter than its Content-Length"), bytes.len()));
    }
    Ok((head + length, is_bodyless))
}

/// Length of a chunked body, without trailers.
fn chunked_length(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = memchr::memmem::find(body.get(at..)?, b"\r\n")?;
        let size = std::str::from_utf8(&body[at..at + line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        at = at.checked_add(line + 2)?.checked_add(size)?;
        body.get(at..)?.starts_with(b"\r\n").then_some(())?;
        at += 2;
        if size == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(bytes: &str) -> Result<Vec<(usize, bool)>, String> {
        let mut found = Vec::new();
        parse(bytes.as_bytes(), &mut found)?;
        let mut again = Vec::new();
        assert_eq!(split(bytes.as_bytes(), &mut again), Ok(()));
        assert_eq!(again, found);
        Ok(found.iter().map(|request| (request.end, request.is_bodyless)).collect())
    }

    #[test]
    fn requests_end_where_their_bodies_end() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let head = "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\n\r\n\r\n\r\n";
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n\r\n\r\n\r\n0\r\n\r\n";
        assert_eq!(ends(get), Ok(vec![(get.len(), false)]));
        assert_eq!(ends(head), Ok(vec![(head.len(), true)]));
        assert_eq!(ends(post), Ok(vec![(post.len(), false)]));
        assert_eq!(ends(chunked), Ok(vec![(chunked.len(), false)]));
        let all = [get, post, head, chunked, get].concat();
        let mut sum = 0;
        let each = [get, post, head, chunked, get].map(|one| {
            sum += one.len();
            (sum, one == head)
        });
        assert_eq!(ends(&all), Ok(each.to_vec()));
    }

    #[test]
    fn mistakes_have_their_line() {
        for (bytes, reason) in [
            ("", "an empty string instead of a request"),
            ("GET / HTTP/1.1\r\nHost: a\r\n", "an incomplete head (an empty line ends it) in line 3 of the request"),
            ("GET /", "an incomplete head (an empty line ends it) in line 1 of the request"),
            ("GET\t/ HTTP/1.1\r\n\r\n", "an invalid head"),
            ("hello\r\n\r\n", "an invalid head"),
            ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n1234567", "2 bytes shorter than its Content-Length"),
            ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "an invalid Content-Length"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "an incomplete chunked body"),
            ("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "two framings"),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "not chunked"),
        ] {
            let error = ends(bytes).unwrap_err();
            assert!(error.contains(reason), "{bytes:?}: {error}");
        }
    }
}

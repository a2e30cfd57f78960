//! Headers of a response, parsed only where a step needs them.

use weir_net::wire::lenient_parser;

/// Maximum number of headers of most responses.
const MAX_USUAL_HEADERS: usize = 32;
/// Maximum number of headers that are parsed.
const MAX_HEADERS: usize = 256;
/// Begin of a head that came over HTTP/2, as text.
pub(crate) const HTTP2_STATUS_LINE: &[u8] = b"HTTP/2 ";

/// Name and value of a header.
pub type HeaderField<'a> = (&'a str, &'a [u8]);

/// Calls with the headers of a head. It was parsed before, by the same rules; what cannot be parsed again has none.
pub fn with_headers<T>(head: &[u8], call: impl FnOnce(&[HeaderField<'_>]) -> T) -> T {
    let lines = head.iter().filter(|byte| **byte == b'\n').count();
    // A large array costs more to clear than most heads to parse.
    if lines <= MAX_USUAL_HEADERS {
        with_up_to::<MAX_USUAL_HEADERS, T>(head, call)
    } else {
        with_up_to::<MAX_HEADERS, T>(head, call)
    }
}

/// Its large frame is not that of every response.
#[inline(never)]
fn with_up_to<const MAX: usize, T>(head: &[u8], call: impl FnOnce(&[HeaderField<'_>]) -> T) -> T {
    let mut headers = [httparse::EMPTY_HEADER; MAX];
    let parsed: &[httparse::Header<'_>] = match head.starts_with(HTTP2_STATUS_LINE) {
        true => {
            let line = head.iter().position(|byte| *byte == b'\n').map_or(head.len(), |end| end + 1);
            match httparse::parse_headers(&head[line..], &mut headers) {
                Ok(httparse::Status::Complete((_, headers))) => headers,
                Ok(httparse::Status::Partial) | Err(_) => &[],
            }
        }
        false => {
            let mut parsed = httparse::Response::new(&mut headers);
            let _ = lenient_parser().parse_response(&mut parsed, head);
            parsed.headers
        }
    };
    let mut fields = [("", &b""[..]); MAX];
    let mut count = 0;
    for (field, header) in fields.iter_mut().zip(parsed.iter()) {
        *field = (header.name, header.value);
        count += 1;
    }
    call(&fields[..count])
}

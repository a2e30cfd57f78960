//! A backend that reads requests as the standard writes them and records every deviation.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What came: request lines, and bytes that are not exactly as RFC 9112 has them.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) lines: Vec<String>,
    pub(crate) violations: Vec<String>,
}

/// A backend that responds to each request, and reads nothing behind a violation.
pub(crate) struct StrictBackend {
    pub(crate) url: String,
    record: Arc<Mutex<Record>>,
}

impl StrictBackend {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let record: Arc<Mutex<Record>> = Arc::default();
        let shared = Arc::clone(&record);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let record = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &record));
            }
        });
        Self { url, record }
    }

    /// What came since the last call.
    pub(crate) fn take(&self) -> Record {
        std::mem::take(&mut self.record.lock().unwrap())
    }
}

fn serve(mut stream: TcpStream, record: &Mutex<Record>) {
    let (mut bytes, mut read) = (Vec::new(), [0; 4096]);
    loop {
        match parse(&bytes) {
            Ok(Some((line, length))) => {
                record.lock().unwrap().lines.push(line);
                bytes.drain(..length);
                if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(why) => {
                let text = format!("{why}: {:?}", String::from_utf8_lossy(&bytes));
                record.lock().unwrap().violations.push(text);
                return;
            }
        }
        match stream.read(&mut read) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&read[..count]),
            _ => return,
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The first request's line and length; None if it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(String, usize)>, &'static str> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let head = &bytes[..end.map_or(bytes.len(), |end| end + 2)];
    let is_bare = |(at, byte): (usize, &u8)| *byte == b'\n' && (at == 0 || head[at - 1] != b'\r');
    if head.iter().enumerate().any(is_bare) {
        return Err("a line feed without a carriage return");
    }
    let Some(end) = end else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "a head that is not ASCII")?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, "HTTP/1.1"] = words[..] else { return Err("a request line without three words") };
    if !is_token(method) || target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("an invalid method or target");
    }
    let (mut length, mut is_chunked) = (None, false);
    for field in lines {
        let Some((name, value)) = field.split_once(':') else { return Err("a field without a colon") };
        if !is_token(name) {
            return Err("an invalid name of a field");
        }
        let value = value.trim_matches([' ', '\t']);
        if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
            return Err("a control character in a field");
        }
        if ["content_length", "transfer_encoding"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Err("a name that some services take for a framing one");
        }
        if name.eq_ignore_ascii_case("content-length") {
            if length.is_some() || value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err("an ambiguous length");
            }
            length = Some(value.parse::<usize>().map_err(|_| "a length out of range")?);
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case("chunked") {
                return Err("an ambiguous transfer coding");
            }
            is_chunked = true;
        }
    }
    let body = end + 4;
    let whole = match (length, is_chunked) {
        (Some(_), true) => return Err("a length and a transfer coding"),
        (None, true) => chunks(&bytes[body..])?.map(|length| body + length),
        (length, false) => Some(body + length.unwrap_or(0)),
    };
    Ok(whole.filter(|whole| *whole <= bytes.len()).map(|whole| (line.to_owned(), whole)))
}

/// Length of a chunked body; None if it is incomplete.
fn chunks(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    loop {
        let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let size = bytes[at..at + end].strip_suffix(b"\r").ok_or("a size of a chunk without a carriage return")?;
        if size.is_empty() || size.len() > 8 || !size.iter().all(u8::is_ascii_hexdigit) {
            return Err("an invalid size of a chunk, or an extension");
        }
        let size = std::str::from_utf8(size).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.ok_or("an invalid size of a chunk")?;
        at += end + 1;
        if size == 0 {
            let rest = &bytes[at..];
            if rest.starts_with(b"\r\n") {
                return Ok(Some(at + 2));
            }
            return Ok(rest.windows(4).position(|window| window == b"\r\n\r\n").map(|end| at + end + 4));
        }
        let Some(data_end) = bytes.get(at + size..at + size + 2) else { return Ok(None) };
        if data_end != b"\r\n" {
            return Err("a chunk of another length than its size");
        }
        at += size + 2;
    }
}

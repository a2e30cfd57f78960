//! Naive parsers of whole bodies.

/// Event as an owned value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Whole {
    pub(super) name: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) retry_ms: Option<u64>,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_truncated: bool,
}

/// Lines of a body with their offsets: start, end without and with the line end. A last line without one is left out.
fn sse_lines(body: &[u8]) -> Vec<(usize, usize, usize)> {
    let mut at = if body.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
    let (mut lines, mut start) = (Vec::new(), at);
    while at < body.len() {
        let is_end = matches!(body[at], b'\r' | b'\n');
        at += 1;
        if is_end {
            lines.push((start, at - 1, at));
            if body[at - 1] == b'\r' && body.get(at) == Some(&b'\n') {
                at += 1;
            }
            start = at;
        }
    }
    lines
}

fn cut(bytes: &[u8], max: usize) -> Vec<u8> {
    bytes[..bytes.len().min(max)].to_vec()
}

/// Step by step as in the standard, "Interpreting an event stream", with lines and data cut as by the reader.
pub(super) fn sse(body: &[u8], max: usize) -> Vec<Whole> {
    let mut events = Vec::new();
    let (mut data, mut name, mut id, mut retry_ms) = (Vec::new(), Vec::new(), Vec::new(), None);
    let (mut event_start, mut is_truncated) = (None, false);
    for (start, end, behind) in sse_lines(body) {
        let line = cut(&body[start..end], max.saturating_add(6));
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                is_truncated |= data.len() > max;
                events.push(Whole {
                    name: name.clone(),
                    data: cut(&data, max),
                    id: id.clone(),
                    retry_ms,
                    start: event_start.expect("a line") as u64,
                    end: behind as u64,
                    is_truncated,
                });
            }
            data.clear();
            name.clear();
            (event_start, is_truncated) = (None, false);
            continue;
        }
        event_start = event_start.or(Some(start));
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            None => (line.as_slice(), &[][..]),
            Some(at) => (&line[..at], &line[at + 1..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                is_truncated |= line.len() < end - start;
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"event" => name = value.to_vec(),
            b"id" if !value.contains(&0) => id = value.to_vec(),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let text = String::from_utf8(value.to_vec()).expect("digits");
                retry_ms = Some(text.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }
    events
}

/// Lines of JSON of a whole body.
pub(super) fn json_lines(body: &[u8], max: usize) -> Vec<Whole> {
    let mut events = Vec::new();
    let mut start = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let event = Whole {
            data: cut(content.strip_suffix(b"\r").unwrap_or(content), max),
            start: start as u64,
            end: (start + line.len()) as u64,
            is_truncated: content.strip_suffix(b"\r").unwrap_or(content).len() > max,
            ..Whole::default()
        };
        start += line.len();
        if !content.trim_ascii().is_empty() {
            events.push(event);
        }
    }
    events
}

/// The whole body as one event.
pub(super) fn document(body: &[u8], max: usize) -> Vec<Whole> {
    let event =
        Whole { data: cut(body, max), end: body.len() as u64, is_truncated: body.len() > max, ..Whole::default() };
    if body.trim_ascii().is_empty() { Vec::new() } else { vec![event] }
}

//! Reader of lines of JSON.

use memchr::memchr;

use super::stream_event::StreamEvent;

/// Reader whose events are lines, without the ones that are blank. A line ends with LF, and a CR before it does not
/// belong to it; a text of JSON holds neither within its strings.
#[derive(Clone, Debug)]
pub(super) struct JsonLineReader {
    max_data_bytes: usize,
    offset: u64,
    /// Offset of the current line.
    start: u64,
    /// Beginning of the current line, from earlier pieces, as far as it is not too long.
    line: Vec<u8>,
    /// Length of that beginning, without a limit.
    line_bytes: u64,
    /// Whether that beginning has something else than white space.
    has_content: bool,
    /// Whether `line` is of an event that was returned.
    is_returned: bool,
}

impl JsonLineReader {
    pub(super) fn new(max_data_bytes: usize) -> Self {
        Self {
            max_data_bytes,
            offset: 0,
            start: 0,
            line: Vec::new(),
            line_bytes: 0,
            has_content: false,
            is_returned: false,
        }
    }

    pub(super) fn restart(&mut self) {
        self.line.clear();
        (self.offset, self.start) = (0, 0);
        (self.line_bytes, self.has_content, self.is_returned) = (0, false, false);
    }

    pub(super) fn next_event<'a, 'p: 'a>(&'a mut self, rest: &mut &'p [u8]) -> Option<StreamEvent<'a>> {
        self.forget_returned();
        loop {
            let Some(at) = memchr(b'\n', rest) else {
                self.keep(rest);
                self.offset += rest.len() as u64;
                *rest = &[];
                return None;
            };
            let piece = *rest;
            let line = &piece[..at];
            *rest = &piece[at + 1..];
            let start = self.start;
            self.offset += at as u64 + 1;
            self.start = self.offset;
            if self.line_bytes > 0 {
                self.keep(line);
                self.is_returned = true;
                if !self.has_content {
                    self.forget_returned();
                    continue;
                }
                let (data, is_truncated) = self.content(&self.line, self.line_bytes);
                return Some(event(data, start, self.offset, is_truncated));
            }
            if is_blank(line) {
                continue;
            }
            let kept = &line[..line.len().min(self.max_line_bytes())];
            let (data, is_truncated) = self.content(kept, line.len() as u64);
            return Some(event(data, start, self.offset, is_truncated));
        }
    }

    pub(super) fn end(&mut self) -> Option<StreamEvent<'_>> {
        self.forget_returned();
        let is_event = self.is_within_event();
        self.is_returned = true;
        let (data, is_truncated) = self.content(&self.line, self.line_bytes);
        is_event.then(|| event(data, self.start, self.offset, is_truncated))
    }

    pub(super) fn is_within_event(&self) -> bool {
        !self.is_returned && self.has_content
    }

    /// Maximum length of a line that is kept: with the CR at its end.
    fn max_line_bytes(&self) -> usize {
        self.max_data_bytes.saturating_add(1)
    }

    fn keep(&mut self, more: &[u8]) {
        let room = self.max_line_bytes() - self.line.len();
        self.line.extend_from_slice(&more[..more.len().min(room)]);
        self.line_bytes += more.len() as u64;
        self.has_content = self.has_content || !is_blank(more);
    }

    fn forget_returned(&mut self) {
        if self.is_returned {
            self.line.clear();
            (self.line_bytes, self.has_content, self.is_returned) = (0, false, false);
        }
    }

    /// Data of a line of which this beginning is kept, and whether it is cut.
    fn content<'a>(&self, kept: &'a [u8], line_bytes: u64) -> (&'a [u8], bool) {
        let is_whole = kept.len() as u64 == line_bytes;
        let line = if is_whole { kept.strip_suffix(b"\r").unwrap_or(kept) } else { kept };
        let is_truncated = line.len() > self.max_data_bytes || !is_whole;
        (&line[..line.len().min(self.max_data_bytes)], is_truncated)
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii_start().is_empty()
}

fn event(data: &[u8], start: u64, end: u64, is_truncated: bool) -> StreamEvent<'_> {
    StreamEvent { name: b"", data, id: b"", retry_ms: None, start, end, is_truncated }
}

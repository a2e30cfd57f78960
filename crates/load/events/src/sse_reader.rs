//! Reader of server-sent events, by the WHATWG's HTML standard, sections 9.2.5 and 9.2.6.

use memchr::memchr2;

use super::stream_event::StreamEvent;

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Longest `data: `, which a line has beside its data.
const DATA_FIELD_BYTES: usize = 6;

/// Reader of server-sent events.
///
/// A line that is within one piece is not copied, and neither is the data of an event with one line of data in the piece
/// that completes it; the rest goes through buffers that are reused.
#[derive(Clone, Debug)]
pub(super) struct SseReader {
    max_data_bytes: usize,
    /// Number of bytes read.
    offset: u64,
    /// Number of bytes of a byte order mark read, at the start of a body; none once that is decided.
    bom_bytes: Option<usize>,
    /// Whether the last byte was a CR: an LF behind it belongs to it.
    skips_lf: bool,
    /// Beginning of the current line, from earlier pieces, and whether it is cut.
    line: Vec<u8>,
    is_line_cut: bool,
    /// Offset of the first line of the current event; none before it.
    start: Option<u64>,
    /// Data of the current event from earlier pieces, or of several lines.
    data: Vec<u8>,
    has_data: bool,
    is_truncated: bool,
    name: Vec<u8>,
    id: Vec<u8>,
    retry_ms: Option<u64>,
    /// Whether `data` and `name` are of an event that was returned.
    is_returned: bool,
}

/// Parts of the current event that are within the current piece.
#[derive(Default)]
struct PieceParts<'a> {
    data: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
}

impl SseReader {
    pub(super) fn new(max_data_bytes: usize) -> Self {
        Self {
            max_data_bytes,
            offset: 0,
            bom_bytes: Some(0),
            skips_lf: false,
            line: Vec::new(),
            is_line_cut: false,
            start: None,
            data: Vec::new(),
            has_data: false,
            is_truncated: false,
            name: Vec::new(),
            id: Vec::new(),
            retry_ms: None,
            is_returned: false,
        }
    }

    pub(super) fn restart(&mut self) {
        self.clear_event();
        self.line.clear();
        self.id.clear();
        self.retry_ms = None;
        (self.offset, self.bom_bytes, self.skips_lf, self.is_line_cut) = (0, Some(0), false, false);
    }

    pub(super) fn is_within_event(&self) -> bool {
        !self.is_returned && (self.start.is_some() || matches!(self.bom_bytes, Some(1..)))
    }

    pub(super) fn next_event<'a, 'p: 'a>(&'a mut self, rest: &mut &'p [u8]) -> Option<StreamEvent<'a>> {
        if self.is_returned {
            self.clear_event();
        }
        let mut parts = PieceParts::default();
        self.skip_bom(rest);
        loop {
            if self.skips_lf && !rest.is_empty() {
                self.skips_lf = false;
                if rest[0] == b'\n' {
                    self.offset += 1;
                    *rest = &rest[1..];
                }
            }
            let piece = *rest;
            let Some(at) = memchr2(b'\n', b'\r', piece) else {
                self.keep_line(piece);
                self.offset += piece.len() as u64;
                *rest = &[];
                self.keep_parts(&parts);
                return None;
            };
            *rest = &piece[at + 1..];
            self.skips_lf = piece[at] == b'\r';
            if at == 0 && self.line.is_empty() {
                self.offset += 1;
                if parts.data.is_some() || self.has_data {
                    break;
                }
                parts = PieceParts::default();
                self.clear_event();
                continue;
            }
            if self.line.is_empty() {
                self.start.get_or_insert(self.offset);
                let is_cut = at > self.max_line_bytes();
                self.process_line(&piece[..at.min(self.max_line_bytes())], is_cut, &mut parts);
            } else {
                self.keep_line(&piece[..at]);
                let line = std::mem::take(&mut self.line);
                self.process_kept_line(&line, &mut parts);
                self.line = line;
                self.line.clear();
                self.is_line_cut = false;
            }
            self.offset += at as u64 + 1;
        }
        Some(self.returned(&parts))
    }

    /// The current event, which is complete.
    fn returned<'a>(&'a mut self, parts: &PieceParts<'a>) -> StreamEvent<'a> {
        self.is_returned = true;
        let mut data = parts.data.unwrap_or(&self.data);
        if data.len() > self.max_data_bytes {
            data = &data[..self.max_data_bytes];
            self.is_truncated = true;
        }
        StreamEvent {
            name: parts.name.unwrap_or(&self.name),
            data,
            id: &self.id,
            retry_ms: self.retry_ms,
            start: self.start.unwrap_or_default(),
            end: self.offset,
            is_truncated: self.is_truncated,
        }
    }

    /// Skips a byte order mark at the start of the body; a part of one without the rest begins the first line.
    fn skip_bom(&mut self, rest: &mut &[u8]) {
        while let Some(known) = self.bom_bytes
            && let Some(byte) = rest.first()
        {
            if BOM.get(known) == Some(byte) {
                self.offset += 1;
                *rest = &rest[1..];
                self.bom_bytes = (known + 1 < BOM.len()).then_some(known + 1);
            } else {
                self.bom_bytes = None;
                if known > 0 {
                    self.start = Some(0);
                    self.line.extend_from_slice(&BOM[..known]);
                }
            }
        }
    }

    fn max_line_bytes(&self) -> usize {
        self.max_data_bytes.saturating_add(DATA_FIELD_BYTES)
    }

    /// Keeps the beginning of a line for the next piece.
    fn keep_line(&mut self, more: &[u8]) {
        if more.is_empty() {
            return;
        }
        if self.line.is_empty() {
            self.start.get_or_insert(self.offset);
        }
        let room = self.max_line_bytes() - self.line.len();
        self.is_line_cut |= more.len() > room;
        self.line.extend_from_slice(&more[..more.len().min(room)]);
    }

    /// Keeps parts of the current event, whose piece ends.
    fn keep_parts(&mut self, parts: &PieceParts<'_>) {
        if let Some(data) = parts.data {
            self.data.clear();
            self.append_data(data);
        }
        if let Some(name) = parts.name {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
    }

    fn clear_event(&mut self) {
        self.data.clear();
        self.name.clear();
        (self.has_data, self.is_truncated, self.is_returned, self.start) = (false, false, false, None);
    }

    /// Appends to the data of the current event, up to the maximum.
    fn append_data(&mut self, more: &[u8]) {
        self.has_data = true;
        let room = self.max_data_bytes - self.data.len();
        self.is_truncated |= more.len() > room;
        self.data.extend_from_slice(&more[..more.len().min(room)]);
    }

    /// Appends a line of data to the ones before it.
    fn append_data_line(&mut self, value: &[u8], parts: &mut PieceParts<'_>) {
        if let Some(first) = parts.data.take() {
            self.data.clear();
            self.append_data(first);
        }
        if self.has_data {
            self.append_data(b"\n");
        }
        self.append_data(value);
    }

    /// Processes a line that is within the current piece.
    fn process_line<'a>(&mut self, line: &'a [u8], is_cut: bool, parts: &mut PieceParts<'a>) {
        match SseField::of(line) {
            SseField::Data(value) => {
                self.is_truncated |= is_cut;
                if parts.data.is_none() && !self.has_data {
                    parts.data = Some(value);
                } else {
                    self.append_data_line(value, parts);
                }
            }
            SseField::Event(value) => parts.name = Some(value),
            SseField::Id(value) => self.set_id(value),
            SseField::Retry(value) => self.set_retry(value),
            SseField::Other => {}
        }
    }

    /// Processes a line that began in an earlier piece.
    fn process_kept_line(&mut self, line: &[u8], parts: &mut PieceParts<'_>) {
        match SseField::of(line) {
            SseField::Data(value) => {
                self.is_truncated |= self.is_line_cut;
                self.append_data_line(value, parts);
            }
            SseField::Event(value) => {
                parts.name = None;
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            SseField::Id(value) => self.set_id(value),
            SseField::Retry(value) => self.set_retry(value),
            SseField::Other => {}
        }
    }

    fn set_id(&mut self, value: &[u8]) {
        if !value.contains(&0) {
            self.id.clear();
            self.id.extend_from_slice(value);
        }
    }

    /// Digits only, and one at least; a longer time than fits is the longest.
    fn set_retry(&mut self, value: &[u8]) {
        if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
            let digit = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
            self.retry_ms = Some(value.iter().fold(0, digit));
        }
    }
}

/// Field of a line that is not empty.
enum SseField<'a> {
    Data(&'a [u8]),
    Event(&'a [u8]),
    Id(&'a [u8]),
    Retry(&'a [u8]),
    /// A comment, or an unknown field.
    Other,
}

impl<'a> SseField<'a> {
    #[inline]
    fn of(line: &'a [u8]) -> Self {
        let value = |name: &[u8]| {
            let rest = line.strip_prefix(name)?;
            match rest.split_first() {
                None => Some(rest),
                Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
                Some(_) => None,
            }
        };
        if let Some(value) = value(b"data") {
            Self::Data(value)
        } else if let Some(value) = value(b"event") {
            Self::Event(value)
        } else if let Some(value) = value(b"id") {
            Self::Id(value)
        } else if let Some(value) = value(b"retry") {
            Self::Retry(value)
        } else {
            Self::Other
        }
    }
}

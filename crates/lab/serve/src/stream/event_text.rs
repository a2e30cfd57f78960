//! Bytes of one event.

use weir_base::rng::SeededRng;
use weir_events::StreamFormat;

use super::options::{LineEnd, SseOptions};
use crate::vocabulary;

/// Writer of events' bytes. Data is `{"n":NUMBER,"text":"WORDS"}`; raw chunks are the words alone.
#[derive(Clone, Debug)]
pub(super) struct EventText<'a> {
    pub(super) format: StreamFormat,
    pub(super) sse: &'a SseOptions,
    pub(super) event_bytes: usize,
    /// Random numbers of words, line ends and comments.
    pub(super) words: SeededRng,
    pub(super) choices: SeededRng,
}

impl EventText<'_> {
    /// Bytes before the first event.
    pub(super) fn opening(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.format == StreamFormat::Sse {
            if self.sse.has_bom {
                bytes.extend_from_slice("\u{feff}".as_bytes());
            }
            if let Some(retry) = self.sse.retry {
                self.push_line(&mut bytes, &format!("retry: {}", retry.as_millis()), 0, 60);
            }
        }
        bytes
    }

    /// Bytes of event `n`, from 1.
    pub(super) fn event(&self, n: u64) -> Vec<u8> {
        let text = vocabulary::text(&self.words, n << 20, self.event_bytes);
        let mut bytes = Vec::new();
        match self.format {
            StreamFormat::Chunks | StreamFormat::Grpc => bytes.extend_from_slice(text.as_bytes()),
            StreamFormat::JsonLines | StreamFormat::Json => {
                bytes.extend_from_slice(format!("{{\"n\":{n},\"text\":\"{text}\"}}\n").as_bytes());
            }
            StreamFormat::Sse => self.push_sse(&mut bytes, n, &text),
        }
        bytes
    }

    fn push_sse(&self, bytes: &mut Vec<u8>, n: u64, text: &str) {
        let mut line = 0;
        let mut push = |bytes: &mut Vec<u8>, text: &str| {
            self.push_line(bytes, text, n, line);
            line += 1;
        };
        if self.choices.unit_at(draw(n, 63)) <= self.sse.comments {
            push(bytes, ": comment");
        }
        if let Some(name) = &self.sse.event_name {
            push(bytes, &format!("event: {name}"));
        }
        if self.sse.has_ids {
            push(bytes, &format!("id: {n}"));
        }
        // Lines of data are joined by LF, which JSON has between any two of its tokens.
        match self.sse.data_lines {
            0 | 1 => push(bytes, &format!("data: {{\"n\":{n},\"text\":\"{text}\"}}")),
            lines => {
                push(bytes, &format!("data: {{\"n\":{n},"));
                (2..lines).for_each(|number| push(bytes, &format!("data: \"line{number}\":{number},")));
                push(bytes, &format!("data: \"text\":\"{text}\"}}"));
            }
        }
        push(bytes, "");
    }

    fn push_line(&self, bytes: &mut Vec<u8>, text: &str, n: u64, line: u64) {
        let end: &[u8] = match self.sse.line_end {
            LineEnd::Lf => b"\n",
            LineEnd::Crlf => b"\r\n",
            LineEnd::Cr => b"\r",
            LineEnd::Mixed => match (self.choices.unit_at(draw(n, line.min(62))) * 3.0) as u8 {
                0 => b"\n",
                1 => b"\r\n",
                _ => b"\r",
            },
        };
        bytes.extend_from_slice(text.as_bytes());
        // A line that ends with CR before an empty one that ends with LF would be one line end.
        let is_joined = text.is_empty() && bytes.last() == Some(&b'\r') && end == b"\n";
        bytes.extend_from_slice(if is_joined { b"\r\n" } else { end });
    }
}

/// Index of draw `choice` of event `n`.
fn draw(n: u64, choice: u64) -> u64 {
    (n << 6) | choice
}

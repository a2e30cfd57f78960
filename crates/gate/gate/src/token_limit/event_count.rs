//! Counts the events of a stream, as its bytes pass by.
//!
//! Models send about one event per token, some send several tokens in one. So the events of a stream are the least that
//! its output can have been, give or take the few at its beginning and end.

const FIELD: &[u8] = b"data:";

/// Count of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventCount {
    events: u64,
    /// Bytes of the field's name that the line begins with; None on a line that is another one.
    matched: Option<usize>,
    is_within_line: bool,
}

impl EventCount {
    /// Lines of data so far.
    pub(crate) fn total(&self) -> u64 {
        self.events
    }

    /// Reads on.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b'\r' | b'\n') {
                self.is_within_line = false;
                continue;
            }
            let matched = if self.is_within_line { self.matched } else { Some(0) };
            self.is_within_line = true;
            self.matched = matched.filter(|matched| *byte == FIELD[*matched]).map(|matched| matched + 1);
            if self.matched == Some(FIELD.len()) {
                self.events += 1;
                self.matched = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(parts: &[&[u8]]) -> u64 {
        let mut count = EventCount::default();
        parts.iter().for_each(|part| count.read(part));
        count.total()
    }

    #[test]
    fn lines_of_data_are_counted() {
        for (text, expected) in [
            ("data: {\"a\":1}\n\ndata: [DONE]\n\n", 2),
            ("event: x\r\ndata:1\r\n\r\n: ping\r\ndata\r\ndatadata:\r\n", 1),
            ("{\n  \"data\": \"data:\"}", 0),
            ("data: data: data:", 1),
            ("", 0),
        ] {
            assert_eq!(events(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            lines in prop::collection::vec("(data|dat|data:|:|event: )?[a-d:]{0,6}", 0..12),
            cuts in prop::collection::vec(0_usize..120, 0..8),
        ) {
            let text = lines.join("\n");
            let expected = lines.iter().filter(|line| line.starts_with("data:")).count() as u64;
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(events(&parts), expected);
        }
    }
}

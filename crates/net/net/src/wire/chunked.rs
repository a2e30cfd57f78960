//! The chunked coding (RFC 9112 section 7.1), decoded in constant memory; data and trailers are handed to the caller.

use super::WireError;

/// Maximum length of a size line (extensions included), of the trailers, and of all extensions where that is strict.
const MAX_LINE_BYTES: u32 = 16 * 1024;

/// Decoder of a chunked body; its state is the position of the next byte.
#[derive(Clone, Copy, Debug)]
pub struct Chunked {
    state: State,
    /// Whether each line has to end with CR LF, and nothing but an extension may follow a size.
    is_strict: bool,
    /// Size of the current chunk, or its remaining bytes.
    size: u64,
    /// Bytes of the current line, or of all trailers.
    line: u32,
    /// Bytes of extensions in all lines.
    extensions: u32,
    /// Bytes of body so far.
    pub(super) body: u64,
}

/// A piece of a chunked body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkedPart<'a> {
    /// Body data.
    Data(&'a [u8]),
    /// The next byte of the trailers, the empty line behind them included.
    Trailer(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of a size; whether there was one.
    Size { digits: bool },
    /// White space behind the digits.
    Space,
    /// Behind the digits: white space, extensions.
    Extension,
    /// Behind the CR of a size line.
    SizeEnd,
    /// In the data of a chunk.
    Data,
    /// Behind the data: CR LF.
    DataEnd { cr: bool },
    /// In the trailers; whether the line is empty so far.
    Trailer { empty: bool },
    /// Behind the CR of a line of the trailers.
    TrailerEnd { empty: bool },
}

impl Chunked {
    /// A decoder of what services send: it takes LF for CR LF.
    pub fn lenient() -> Self {
        Self { state: State::Size { digits: false }, is_strict: false, size: 0, line: 0, extensions: 0, body: 0 }
    }

    /// A decoder that takes what RFC 9112 allows, and nothing that two readers may understand in two ways.
    pub fn strict() -> Self {
        Self { is_strict: true, ..Self::lenient() }
    }

    /// Decodes bytes, and passes the data and trailers on, piece by piece; returns the number that belong to the body,
    /// and whether it has ended.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        mut hand_on: impl FnMut(ChunkedPart<'_>),
    ) -> Result<(usize, bool), WireError> {
        let mut at = 0;
        while at < bytes.len() {
            if self.state == State::Data {
                let take = self.size.min((bytes.len() - at) as u64);
                self.size -= take;
                self.body += take;
                hand_on(ChunkedPart::Data(&bytes[at..at + take as usize]));
                at += take as usize;
                if self.size == 0 {
                    self.state = State::DataEnd { cr: false };
                }
                continue;
            }
            if matches!(self.state, State::Trailer { .. } | State::TrailerEnd { .. }) {
                hand_on(ChunkedPart::Trailer(bytes[at]));
            }
            let ended = self.byte(bytes[at])?;
            at += 1;
            if ended {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    fn byte(&mut self, byte: u8) -> Result<bool, WireError> {
        self.line += 1;
        if self.line > MAX_LINE_BYTES {
            return Err(WireError::BadChunk);
        }
        self.state = match (self.state, byte) {
            _ if self.is_strict => return self.strict_byte(byte),
            (State::Size { .. }, b) if b.is_ascii_hexdigit() => self.digit(b)?,
            (State::Size { digits: true } | State::Extension, b'\n') => self.chunk_begins(),
            (State::Size { digits: true }, b';' | b' ' | b'\t' | b'\r') => State::Extension,
            (State::Extension, _) => State::Extension,
            (State::DataEnd { cr: false }, b'\r') => State::DataEnd { cr: true },
            (State::DataEnd { .. }, b'\n') => {
                self.line = 0;
                State::Size { digits: false }
            }
            (State::Trailer { empty: true }, b'\n') => return Ok(true),
            (State::Trailer { .. }, b'\n') => State::Trailer { empty: true },
            (State::Trailer { empty }, b) => State::Trailer { empty: empty && b == b'\r' },
            _ => return Err(WireError::BadChunk),
        };
        Ok(false)
    }

    fn strict_byte(&mut self, byte: u8) -> Result<bool, WireError> {
        self.state = match (self.state, byte) {
            (State::Size { .. }, b) if b.is_ascii_hexdigit() => self.digit(b)?,
            (State::Size { digits: true } | State::Space, b' ' | b'\t') => State::Space,
            (State::Size { digits: true } | State::Space, b';') => State::Extension,
            (State::Size { digits: true } | State::Space | State::Extension, b'\r') => State::SizeEnd,
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) if self.extensions < MAX_LINE_BYTES => {
                self.extensions += 1;
                State::Extension
            }
            (State::SizeEnd, b'\n') => self.chunk_begins(),
            (State::DataEnd { cr: false }, b'\r') => State::DataEnd { cr: true },
            (State::DataEnd { cr: true }, b'\n') => {
                self.line = 0;
                State::Size { digits: false }
            }
            (State::Trailer { empty }, b'\r') => State::TrailerEnd { empty },
            (State::Trailer { .. }, b) if b != b'\n' => State::Trailer { empty: false },
            (State::TrailerEnd { empty: true }, b'\n') => return Ok(true),
            (State::TrailerEnd { empty: false }, b'\n') => State::Trailer { empty: true },
            _ => return Err(WireError::BadChunk),
        };
        Ok(false)
    }

    fn digit(&mut self, digit: u8) -> Result<State, WireError> {
        if self.size >> 60 != 0 {
            return Err(WireError::BadChunk);
        }
        self.size = self.size << 4 | u64::from((digit as char).to_digit(16).unwrap_or(0));
        Ok(State::Size { digits: true })
    }

    /// The end of a size line.
    fn chunk_begins(&mut self) -> State {
        self.line = 0;
        if self.size == 0 { State::Trailer { empty: true } } else { State::Data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<(usize, bool, u64), WireError> {
        decode(Chunked::lenient(), text)
    }

    fn decode(mut chunked: Chunked, text: &str) -> Result<(usize, bool, u64), WireError> {
        chunked.decode(text.as_bytes(), |_| {}).map(|(used, ended)| (used, ended, chunked.body))
    }

    #[test]
    fn sizes_extensions_and_trailers() {
        assert_eq!(whole("5\r\nhello\r\n0\r\n\r\n"), Ok((15, true, 5)));
        assert_eq!(whole("a;name=\"v\"\r\n0123456789\r\n0\r\n\r\n"), Ok((29, true, 10)));
        assert_eq!(whole("A \r\n0123456789\r\n000\r\nTrailer: x\r\nOther: y\r\n\r\nNEXT"), Ok((45, true, 10)));
        assert_eq!(whole("1\nx\n0\n\n"), Ok((7, true, 1)));
        assert_eq!(whole("ffffffffffffff\r\nx").map(|r| (r.1, r.2)), Ok((false, 1)));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let long = format!("1;{}\r\n", "x".repeat(20_000));
        for text in ["\r\n", "g\r\n", "-1\r\n", "5\r\nhelloX", "11111111111111111\r\n", "1\r\nx\rX", &long] {
            assert_eq!(whole(text), Err(WireError::BadChunk), "{text}");
        }
    }

    #[test]
    fn a_strict_reader_takes_what_has_one_meaning() {
        let strict = |text: &str| decode(Chunked::strict(), text);
        for text in [
            "5\r\nhello\r\n0\r\n\r\n",
            "a;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
            "0 \t;x\r\n\r\n",
        ] {
            assert_eq!(strict(text), whole(text), "{text}");
            assert!(strict(text).is_ok_and(|(used, ended, _)| ended && used == text.len()), "{text}");
        }
        for text in [
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\n",
            "5\r\nhello\r\n0\r\nA: b\n\r\n",
            "5\r\nhello\r\n0\r\nA: b\rc\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5 5\r\nhello\r\n0\r\n\r\n",
            "5\rX\r\nhello",
            ";a\r\n",
            " 5\r\nhello",
            "\r\n",
            "0x5\r\nhello",
            "5;a=\0\r\nhello\r\n0\r\n\r\n",
            &format!("1;{}\r\nx\r\n", "x".repeat(100)).repeat(200),
        ] {
            assert_eq!(strict(text), Err(WireError::BadChunk), "{text}");
        }
    }
}

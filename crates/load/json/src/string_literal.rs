//! String literals of paths.

use super::parse::{PathParser, PathResult};

impl PathParser<'_> {
    /// String in single or double quotes.
    pub(super) fn string(&mut self) -> PathResult<String> {
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"')).ok_or_else(|| self.error("a string"))?;
        self.at += 1;
        let mut text = String::new();
        loop {
            let next = self.peek().ok_or_else(|| self.error("the end of the string"))?;
            if next < ' ' {
                return Err(self.error("an escaped control character"));
            }
            self.at += next.len_utf8();
            match next {
                _ if next == quote => return Ok(text),
                '\\' => text.push(self.escape(quote)?),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self, quote: char) -> PathResult<char> {
        let next = self.peek().ok_or_else(|| self.error("an escape"))?;
        self.at += next.len_utf8();
        Ok(match next {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' | '\\' => next,
            'u' => {
                let high = self.hex()?;
                let code = match high {
                    0xD800..=0xDBFF => {
                        self.expect("\\u", "the second half of a surrogate pair")?;
                        let low = self.hex()?;
                        if !(0xDC00..=0xDFFF).contains(&low) {
                            return Err(self.error("the second half of a surrogate pair"));
                        }
                        0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
                    }
                    code => code,
                };
                char::from_u32(code).ok_or_else(|| self.error("a character"))?
            }
            _ if next == quote => next,
            _ => return Err(self.error("an escape of JSON")),
        })
    }

    fn hex(&mut self) -> PathResult<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }
}

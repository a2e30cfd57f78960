//! Lines of fields between literals.

use std::str::FromStr;

use memchr::memmem;

use super::access_record::AccessRecord;
use super::line_error::LineError;
use super::line_field::{FieldTexts, LineField, TookUnit};
use super::line_piece::{LinePiece, PatternError};
use super::raw_fields::TextEscapes;
use super::{nginx_notation, percent_notation};

/// Text that may follow the last piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTail {
    /// Nothing.
    Nothing,
    /// Further fields after a space; the first one that looks like nginx's `$request_time` is that.
    Fields,
}

/// Pattern of a line: fields, and the literals between them. A field ends where the literal behind it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePattern {
    pieces: Vec<LinePiece>,
    tail: LineTail,
}

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// Reads a pattern in the notation of nginx (`$request`), Apache (`%r`) or Envoy (`%REQ(:METHOD)%`).
impl FromStr for LinePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError(format!("longer than {MAX_PATTERN_BYTES} bytes")));
        }
        let pieces = match (text.contains('$'), text.contains('%')) {
            (true, _) => nginx_notation::pieces(text)?,
            (false, true) if percent_notation::is_envoy(text) => percent_notation::envoy_pieces(text)?,
            (false, true) => percent_notation::apache_pieces(text)?,
            (false, false) => {
                let why = "no field; write nginx's variables, e.g. '[$time_local] \"$request\" $status', or Apache's \
                           directives, e.g. '%t \"%r\" %>s'";
                return Err(PatternError(why.to_owned()));
            }
        };
        Self::of_pieces(pieces, LineTail::Nothing)
    }
}

impl LinePattern {
    /// Pattern of pieces, with what a replay needs.
    pub(crate) fn of_pieces(pieces: Vec<LinePiece>, tail: LineTail) -> Result<Self, PatternError> {
        let has = |wanted: &dyn Fn(LineField) -> bool| {
            pieces.iter().any(|piece| matches!(piece, LinePiece::Field(field) if wanted(*field)))
        };
        let has_path = has(&|field| matches!(field, LineField::Target | LineField::Path));
        if !has(&|field| matches!(field, LineField::Time(_))) {
            return Err(PatternError("no time; add e.g. $time_local, $msec, %t or %START_TIME%".to_owned()));
        }
        let has_parts = has_path && has(&|field| field == LineField::Method);
        if !has_parts && !has(&|field| field == LineField::RequestLine) {
            return Err(PatternError("no request; add e.g. $request, or %r, or the method and the path".to_owned()));
        }
        let together = pieces.windows(2).any(|pair| matches!(pair, [LinePiece::Field(_), LinePiece::Field(_)]));
        if together {
            return Err(PatternError("two fields without anything between them; where one ends is unknown".to_owned()));
        }
        Ok(Self { pieces, tail })
    }

    /// Record of a line.
    ///
    /// # Errors
    /// Why the line is not of this pattern, or has no request.
    pub fn record(&self, line: &str) -> Result<AccessRecord, LineError> {
        self.fields(line)?.into_record(TextEscapes::Undone)
    }

    fn fields<'a>(&self, line: &'a str) -> Result<FieldTexts<'a>, LineError> {
        let mut fields = FieldTexts::default();
        let mut rest = line;
        let mut is_quoted = false;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                LinePiece::Literal(text) => {
                    rest = rest.strip_prefix(text.as_str()).ok_or_else(|| LineError::Literal(text.clone()))?;
                    is_quoted = text.ends_with('"');
                }
                LinePiece::Field(field) => {
                    let end = match pieces.peek() {
                        Some(LinePiece::Literal(text)) => {
                            end_of(rest, text, is_quoted).ok_or_else(|| LineError::Literal(text.clone()))?
                        }
                        _ if self.tail == LineTail::Fields => rest.find(' ').unwrap_or(rest.len()),
                        _ => rest.len(),
                    };
                    fields.take(*field, &rest[..end])?;
                    rest = &rest[end..];
                }
            }
        }
        match self.tail {
            LineTail::Nothing if rest.is_empty() => Ok(fields),
            LineTail::Fields if rest.is_empty() || rest.starts_with(' ') => {
                if let Some(seconds) = request_time(rest) {
                    fields.take(LineField::Took(TookUnit::Seconds), seconds)?;
                }
                Ok(fields)
            }
            _ => Err(LineError::Remainder(rest.to_owned())),
        }
    }
}

/// Where a literal begins that ends a field; in quotes a quotation mark behind a backslash is text.
fn end_of(text: &str, literal: &str, is_quoted: bool) -> Option<usize> {
    let mut ends = memmem::find_iter(text.as_bytes(), literal.as_bytes());
    if !is_quoted || !literal.starts_with('"') {
        return ends.next();
    }
    ends.find(|end| text.as_bytes()[..*end].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0)
}

/// Value of nginx's `$request_time` among the fields behind those of the Combined Log Format: it has three decimals and
/// stands alone, or behind `rt=`, `request_time=` or `request_time:`.
fn request_time(tail: &str) -> Option<&str> {
    let plain = |word: &str| word.trim_matches('"').trim_end_matches(',').len();
    let value = |word: &'_ str| -> Option<std::ops::Range<usize>> {
        let start = word.len() - word.trim_start_matches('"').len();
        let inner = &word[start..(start + plain(word)).min(word.len())];
        let key = ["rt=", "request_time=", "request_time:"].into_iter().find(|key| inner.starts_with(key));
        let from = start + key.map_or(0, str::len);
        let number = &word[from..(start + inner.len())];
        let (whole, decimals) = number.split_once('.')?;
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (decimals.len() == 3 && is_digits(whole) && is_digits(decimals)).then_some(from..from + number.len())
    };
    tail.split(' ').find_map(|word| value(word).map(|range| &word[range]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_time::{AccessTime, StampMoment};
    use proptest::prelude::*;
    use weir_base::Nanos;

    fn pattern(text: &str) -> LinePattern {
        text.parse().expect("a pattern")
    }

    #[test]
    fn a_line_is_read_by_a_pattern_of_each_notation() {
        let record = pattern(r#"$host [$time_local] "$request" $status $request_time "$http_user_agent""#)
            .record(r#"h:1 [10/Oct/2000:13:55:36 -0700] "GET /a\x22b HTTP/1.1" 200 1.250 "a \"b\" c""#)
            .expect("a record");
        assert_eq!((&*record.method, &*record.target, record.status), ("GET", "/a\"b", Some(200)));
        assert_eq!((record.host.as_deref(), record.user_agent.as_deref()), (Some("h:1"), Some("a \"b\" c")));
        assert_eq!((record.took, record.time.is_end()), (Some(Nanos::from_millis(1250)), true));
        assert_eq!(record.start_ns(2_000_000_000), 750_000_000);
        let record = pattern(r#"%h %t "%r" %>s %D"#)
            .record(r#"::1 [10/Oct/2000:13:55:36 -0700] "POST /a HTTP/1.0" 204 1500"#)
            .expect("a record");
        assert_eq!((&*record.method, record.took, record.time.is_end()), ("POST", Some(Nanos(1_500_000)), false));
        let record = pattern(r#"%START_TIME% %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %DURATION%"#)
            .record("2016-04-15T20:17:00.310Z GET /a?b 7")
            .expect("a record");
        assert_eq!((&*record.target, record.took), ("/a?b", Some(Nanos::from_millis(7))));
    }

    #[test]
    fn lines_that_are_not_of_a_pattern_have_a_reason() {
        let pattern = pattern(r#"[$time_local] "$request" $status"#);
        let error = |line: &str| pattern.record(line).expect_err("an error").to_string();
        assert_eq!(error("x"), "expected '['");
        assert_eq!(error("[10/Oct/2000:13:55:36 -0700] GET"), "expected '] \"'");
        assert_eq!(error(r#"[now] "GET / HTTP/1.1" 200"#), "invalid time 'now'");
        assert_eq!(error(r#"[-] "GET / HTTP/1.1" 200"#), "no time");
        assert_eq!(error(r#"[10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 20"#), "invalid status '20'");
        let tls = r#"[10/Oct/2000:13:55:36 -0700] "\x16\x03\x01" 400"#;
        assert_eq!(error(tls), r"no HTTP request: '\x16\x03\x01'");
    }

    #[test]
    fn patterns_without_what_a_replay_needs_are_mistakes() {
        for (text, part) in [
            ("plain", "no field"),
            ("$status", "no time"),
            ("$msec $status", "no request"),
            ("$msec $request_method", "no request"),
            ("$msec $request$status", "two fields"),
            ("%t %q %?", "unknown directive"),
            ("%START_TIME% %REQ(", "unknown"),
            ("[%START_TIME%] %)REQ(x", "unknown"),
        ] {
            let error = text.parse::<LinePattern>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_request_time_is_found_behind_the_combined_format() {
        assert_eq!(request_time(r#" "-" 0.123 0.122"#), Some("0.123"));
        assert_eq!(request_time(r#" "10.0.0.1" rt=1.500 uct="0.000""#), Some("1.500"));
        assert_eq!(request_time(r#" "2.000""#), Some("2.000"));
        assert_eq!(request_time(r#" 123 1.2 "x.123" é"#), None);
    }

    /// Line of a record as `pattern` would log it, with `time` as its time stamp.
    fn printed(pattern: &LinePattern, record: &AccessRecord, time: &str) -> String {
        let text = |field: &LineField| match field {
            LineField::Time(_) => time.to_owned(),
            LineField::Took(_) => format!("{:.3}", record.took.map_or(0.0, Nanos::as_secs_f64)),
            LineField::RequestLine => {
                format!("{} {} HTTP/1.1", record.method, record.target.replace('\\', r"\x5C").replace('"', r"\x22"))
            }
            LineField::Status => record.status.map_or("-".to_owned(), |status| status.to_string()),
            LineField::UserAgent => {
                record.user_agent.as_deref().unwrap_or("-").replace('\\', r"\\").replace('"', "\\\"")
            }
            LineField::Host => record.host.as_deref().unwrap_or("-").to_owned(),
            _ => "-".to_owned(),
        };
        let piece = |piece: &LinePiece| match piece {
            LinePiece::Literal(text) => text.clone(),
            LinePiece::Field(field) => text(field),
        };
        pattern.pieces.iter().map(piece).collect()
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(
            unix_s in 0..4_000_000_000_i64, took_ms in 0..100_000_u64, method in "[A-Z]{1,9}", path in "/[!-~]{0,30}",
            status in prop::option::of(100..600_u16), agent in prop::option::of("[ -~é]{1,20}"),
            host in prop::option::of("[a-z.]{2,12}")
        ) {
            prop_assume!(method != "CONNECT" && agent.as_deref() != Some("-"));
            let pattern = pattern(r#"$host - $remote_user [$msec] "$request" $status $request_time "$http_user_agent""#);
            let record = AccessRecord {
                time: AccessTime { unix_ns: unix_s * 1_000_000_000, resolution: Nanos::SECOND, moment: StampMoment::End },
                took: Some(Nanos::from_millis(took_ms)),
                method: method.into(),
                target: path.into(),
                host: host.map(Into::into),
                status,
                user_agent: agent.map(Into::into),
                referer: None,
                body: None,
            };
            let line = printed(&pattern, &record, &unix_s.to_string());
            prop_assert_eq!(pattern.record(&line), Ok(record), "{}", line);
        }

        #[test]
        fn any_line_is_a_record_or_an_error(line in "[\\PC\"\\\\ \\[\\]]{0,80}") {
            let _ = pattern(r#"[$time_local] "$request" $status"#).record(&line);
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in "[$%a-zA-Z_ {}()\"<>:!,é]{0,40}") {
            let _ = text.parse::<LinePattern>();
        }
    }
}

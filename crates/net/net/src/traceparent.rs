//! Trace context of a call, as in the header `traceparent` (W3C Trace Context).

use std::fmt;

/// Trace context: the trace, the span of the call, and whether it is sampled.
///
/// Each attempt has its own span below it, see [`Self::of_attempt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Trace ID; not 0.
    pub trace_id: u128,
    /// Span ID; not 0.
    pub span_id: u64,
    /// Flags. Bit 0: sampled. Bit 1: the trace ID is random.
    pub flags: u8,
}

/// Defined flags; others are not passed on (section 3.2.2.5 of level 2).
const KNOWN_FLAGS: u8 = 0b11;

/// `00-<32 digits>-<16 digits>-<2 digits>`
const TRACEPARENT_BYTES: usize = 55;

impl TraceContext {
    /// Parses a header value. None if it must be ignored: malformed, or with an ID of zeros.
    ///
    /// Of later versions the fields of version 00 are read.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
        if [2, 35, 52].iter().any(|dash| known[*dash] != b'-') {
            return None;
        }
        let version = hex(&known[..2])?;
        let fits = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let trace_id = hex(&known[3..35]).filter(|id| *id != 0)?;
        let span_id = hex(&known[36..52]).filter(|id| *id != 0)? as u64;
        let flags = hex(&known[53..])? as u8;
        // Only the first flag has the same meaning in all versions.
        let flags = flags & if version == 0 { KNOWN_FLAGS } else { 1 };
        fits.then_some(Self { trace_id, span_id, flags })
    }

    /// Context of an attempt: its number (from 0) plus one is added to the span ID. Neither 0 nor this one's ID.
    #[must_use]
    pub fn of_attempt(self, number: u32) -> Self {
        let (span_id, over) = self.span_id.overflowing_add(u64::from(number) + 1);
        Self { span_id: span_id + u64::from(over), ..self }
    }
}

/// The header value, in version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags & KNOWN_FLAGS)
    }
}

/// Parses up to 32 hexadecimal digits in lower case.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |sum: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn read(text: &str) -> Option<(u128, u64, u8)> {
        TraceContext::parse(text.as_bytes()).map(|trace| (trace.trace_id, trace.span_id, trace.flags))
    }

    #[test]
    fn a_header_value_round_trips() {
        let text = format!("00-{TRACE}-{SPAN}-01");
        let all = (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331, 1);
        assert_eq!(read(&text), Some(all));
        assert_eq!(TraceContext::parse(text.as_bytes()).map(|trace| trace.to_string()), Some(text));
    }

    #[test]
    fn invalid_header_values_are_ignored() {
        let (trace, span) = (TRACE, SPAN);
        for text in [
            String::new(),
            format!("00-{trace}-{span}-1"),
            format!("00-{trace}-{span}-011"),
            format!("00-{trace}-{span}-01-"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{trace}-{span}_01"),
            format!("00_{trace}-{span}-01"),
            format!("0-0{trace}-{span}-01"),
            format!("ff-{trace}-{span}-01"),
            format!("ff-{trace}-{span}-01-more"),
            format!("cc-{trace}-{span}-01more"),
            format!("cc-{trace}-{span}-01.more"),
            format!("zz-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{}-01", span.to_uppercase()),
            format!("00-{trace}-{span}-0g"),
            format!(" 00-{trace}-{span}-01"),
        ] {
            assert_eq!(read(&text), None, "{text}");
        }
    }

    #[test]
    fn known_fields_of_later_versions_are_read() {
        for more in ["", "-", "-what-the-future-will-be-like"] {
            let flags = read(&format!("cc-{TRACE}-{SPAN}-ff{more}")).map(|(.., flags)| flags);
            assert_eq!(flags, Some(1), "{more}");
        }
        assert_eq!(read(&format!("00-{TRACE}-{SPAN}-ff")).map(|(.., flags)| flags), Some(3));
    }

    proptest! {
        #[test]
        fn attempts_have_unique_spans(
            trace_id in 1_u128.., span_id in prop_oneof![1_u64.., u64::MAX - 70..=u64::MAX]
        ) {
            let call = TraceContext { trace_id, span_id, flags: 1 };
            let mut spans: Vec<u64> = (0..64).map(|number| call.of_attempt(number).span_id).collect();
            prop_assert!(!spans.contains(&0) && !spans.contains(&span_id));
            prop_assert_eq!(spans[0], if span_id == u64::MAX { 1 } else { span_id + 1 });
            spans.sort_unstable();
            spans.dedup();
            prop_assert_eq!(spans.len(), 64);
        }

        #[test]
        fn any_bytes_are_read_or_ignored(bytes: Vec<u8>, text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}-?") {
            TraceContext::parse(&bytes);
            if let Some(trace) = TraceContext::parse(text.as_bytes()) {
                prop_assert_eq!(TraceContext::parse(trace.to_string().as_bytes()), Some(trace));
            }
        }
    }
}

//! Number of fields of a header block (HPACK, RFC 7541), without a table: what a field is made of follows from its first
//! byte and its lengths alone.

const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// Expected kind of the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Expected {
    /// First byte of a field, or of a change of the table's size.
    #[default]
    Field,
    /// A further byte of an integer, and the parts that follow it.
    Integer(Strings),
    /// First byte of a string, and the strings that follow it.
    String(Strings),
    /// A further byte of a string's length.
    StringLength { shift: u32, strings: Strings },
    /// Bytes of a string.
    Text(Strings),
}

/// Strings that follow: none, the value, or name and value.
type Strings = u8;

/// Fields of the block that passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderBlockScan {
    expected: Expected,
    /// Bytes of the present string that are still to come.
    text_left: u64,
    /// Bytes before the block: pad length, priority.
    prefix_left: usize,
    /// Whether the first of these is the pad length.
    is_padded: bool,
    /// Bytes of the frame that belong to the block.
    frame_left: usize,
    fields: u64,
}

impl HeaderBlockScan {
    /// Begins the block of a HEADERS frame with these flags and length.
    pub(crate) fn begin_block(&mut self, flags: u8, length: u32) {
        let is_padded = flags & PADDED != 0;
        let prefix_left = usize::from(is_padded) + if flags & PRIORITY != 0 { 5 } else { 0 };
        *self = Self { prefix_left, is_padded, frame_left: length as usize, ..Self::default() };
    }

    /// Begins a frame that goes on with the block.
    pub(crate) fn begin_continuation(&mut self, length: u32) {
        (self.frame_left, self.prefix_left, self.is_padded) = (length as usize, 0, false);
    }

    /// Scans bytes of a frame; how many fields beyond `free` fields of the block they begin.
    pub(crate) fn scan(&mut self, mut bytes: &[u8], free: u64) -> u64 {
        let before = self.fields.max(free);
        while let Some((first, rest)) = bytes.split_first() {
            if self.prefix_left > 0 {
                self.prefix_left -= 1;
                self.frame_left = self.frame_left.saturating_sub(1);
                if std::mem::take(&mut self.is_padded) {
                    self.frame_left = self.frame_left.saturating_sub(usize::from(*first));
                }
                bytes = rest;
                continue;
            }
            if self.frame_left == 0 {
                // Padding.
                break;
            }
            if let Expected::Text(strings) = self.expected {
                let length = bytes.len().min(self.frame_left);
                let taken = usize::try_from(self.text_left).map_or(length, |left| left.min(length));
                self.text_left -= taken as u64;
                self.frame_left -= taken;
                if self.text_left == 0 {
                    self.expect_strings(strings);
                }
                bytes = &bytes[taken..];
                continue;
            }
            self.frame_left -= 1;
            self.step(*first);
            bytes = rest;
        }
        self.fields.max(free) - before
    }

    fn step(&mut self, byte: u8) {
        match self.expected {
            Expected::Field => {
                self.fields += 1;
                // Bits of the index, and strings behind it.
                let (mask, strings) = match byte {
                    0x80.. => (0x7f, 0),
                    0x40.. => (0x3f, 1),
                    0x20.. => (0x1f, 0),
                    _ => (0x0f, 1),
                };
                let index = byte & mask;
                let strings = if strings == 1 && index == 0 { 2 } else { strings };
                if index == mask { self.expected = Expected::Integer(strings) } else { self.expect_strings(strings) }
            }
            Expected::Integer(strings) => {
                if byte & 0x80 == 0 {
                    self.expect_strings(strings);
                }
            }
            Expected::String(strings) => {
                self.text_left = u64::from(byte & 0x7f);
                if self.text_left == 0x7f {
                    self.expected = Expected::StringLength { shift: 0, strings };
                } else {
                    self.expect_text(strings);
                }
            }
            Expected::StringLength { shift, strings } => {
                let bits = u64::from(byte & 0x7f);
                // A longer one is an error of the peer, which the connection's own decoder finds.
                self.text_left = self.text_left.saturating_add(bits.checked_shl(shift).unwrap_or(u64::MAX));
                if byte & 0x80 == 0 {
                    self.expect_text(strings);
                } else {
                    self.expected = Expected::StringLength { shift: (shift + 7).min(56), strings };
                }
            }
            Expected::Text(_) => {}
        }
    }

    fn expect_text(&mut self, strings: Strings) {
        if self.text_left > 0 { self.expected = Expected::Text(strings) } else { self.expect_strings(strings) }
    }

    fn expect_strings(&mut self, strings: Strings) {
        self.expected = match strings.checked_sub(1) {
            Some(after) => Expected::String(after),
            None => Expected::Field,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Part {
        Indexed(u32),
        Literal { first: u8, mask: u8, index: u32, name: Vec<u8>, value: Vec<u8> },
        TableSize(u32),
    }

    fn integer(out: &mut Vec<u8>, first: u8, mask: u8, value: u32) {
        let Some(mut rest) = value.checked_sub(u32::from(mask)) else {
            out.push(first | value as u8);
            return;
        };
        out.push(first | mask);
        while rest >= 128 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn string(out: &mut Vec<u8>, text: &[u8]) {
        integer(out, 0x80, 0x7f, text.len() as u32);
        out.extend_from_slice(text);
    }

    fn encode(parts: &[Part]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Part::Indexed(index) => integer(&mut out, 0x80, 0x7f, *index),
                Part::TableSize(size) => integer(&mut out, 0x20, 0x1f, *size),
                Part::Literal { first, mask, index, name, value } => {
                    integer(&mut out, *first, *mask, *index);
                    if *index == 0 {
                        string(&mut out, name);
                    }
                    string(&mut out, value);
                }
            }
        }
        out
    }

    fn parts() -> impl Strategy<Value = Vec<Part>> {
        let text = || prop::collection::vec(any::<u8>(), 0..400);
        let kind = prop_oneof![Just((0x40, 0x3f)), Just((0x00, 0x0f)), Just((0x10, 0x0f))];
        let literal = (kind, prop_oneof![Just(0_u32), 1_u32..2000], text(), text());
        let part = prop_oneof![
            (1_u32..2000).prop_map(Part::Indexed),
            (0_u32..5000).prop_map(Part::TableSize),
            literal.prop_map(|((first, mask), index, name, value)| Part::Literal { first, mask, index, name, value }),
        ];
        prop::collection::vec(part, 0..40)
    }

    proptest! {
        #[test]
        fn fields_are_counted_whatever_they_hold_and_however_they_are_cut(
            parts in parts(),
            cuts in prop::collection::vec(1_usize..50, 1..200),
            frame_at in any::<prop::sample::Index>(),
            padding in prop::option::of(any::<u8>()),
            has_priority in any::<bool>(),
            free in 0_u64..10,
        ) {
            let block = encode(&parts);
            let (first, second) = block.split_at(if block.is_empty() { 0 } else { frame_at.index(block.len()) });
            let mut payload: Vec<u8> = padding.into_iter().collect();
            payload.extend([0xff; 5].iter().filter(|_| has_priority));
            payload.extend_from_slice(first);
            payload.extend(vec![0x82; usize::from(padding.unwrap_or_default())]);
            let flags = if padding.is_some() { PADDED } else { 0 } | if has_priority { PRIORITY } else { 0 };
            let mut scan = HeaderBlockScan::default();
            let (mut surplus, mut cuts) = (0, cuts.iter().cycle());
            let mut feed = |scan: &mut HeaderBlockScan, mut bytes: &[u8]| {
                while !bytes.is_empty() {
                    let (piece, rest) = bytes.split_at(cuts.next().copied().unwrap_or(1).min(bytes.len()));
                    surplus += scan.scan(piece, free);
                    bytes = rest;
                }
            };
            scan.begin_block(flags, payload.len() as u32);
            feed(&mut scan, &payload);
            scan.begin_continuation(second.len() as u32);
            feed(&mut scan, second);
            prop_assert_eq!(surplus, (parts.len() as u64).saturating_sub(free));
        }

        #[test]
        fn no_bytes_are_too_odd(frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20)) {
            let mut scan = HeaderBlockScan::default();
            for (flags, payload) in frames {
                scan.begin_block(flags, payload.len() as u32);
                prop_assert!(scan.scan(&payload, 0) <= payload.len() as u64);
            }
        }
    }
}

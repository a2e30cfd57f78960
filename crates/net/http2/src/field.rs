//! Characters of fields (RFC 9110 section 5, RFC 9113 section 8.2.1).

/// Parts of a field that a byte is allowed in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    /// Neither name nor value.
    Nothing,
    /// A value.
    Value,
    /// A value, and a name in upper case.
    UpperName,
    /// A value and a name.
    Name,
}

static CLASSES: [ByteClass; 256] = classes();

const fn classes() -> [ByteClass; 256] {
    let mut classes = [ByteClass::Value; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            0 | b'\r' | b'\n' => ByteClass::Nothing,
            b'A'..=b'Z' => ByteClass::UpperName,
            b'a'..=b'z' | b'0'..=b'9' => ByteClass::Name,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~' => {
                ByteClass::Name
            }
            _ => ByteClass::Value,
        };
        byte += 1;
    }
    classes
}

#[inline]
fn class(byte: u8) -> ByteClass {
    CLASSES[usize::from(byte)]
}

/// Whether text is a name of HTTP/1.1, in letters of either case.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| matches!(class(*byte), ByteClass::Name | ByteClass::UpperName))
}

/// Whether text is a name of HTTP/2, without a colon before it.
#[inline]
pub(crate) fn is_lower_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| class(*byte) == ByteClass::Name)
}

/// Whether text is a value: no character that ends a line, and no white space around it.
#[inline]
pub(crate) fn is_field_value(text: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !is_blank(text.first()) && !is_blank(text.last()) && text.iter().all(|byte| class(*byte) != ByteClass::Nothing)
}

/// Text without the white space around it.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(start, |last| last + 1);
    &text[start..end]
}

/// A number of digits only; `None` for anything else, and beyond 64 bits.
pub(crate) fn digits(text: &[u8]) -> Option<u64> {
    let start = (!text.is_empty()).then_some(0_u64)?;
    text.iter().try_fold(start, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

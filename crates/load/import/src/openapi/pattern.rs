//! Texts that a regular expression matches.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Maximum parts of a pattern that are expanded for one text, repetitions included.
const MAX_PARTS: u32 = 20_000;

/// Longest text that is made.
const MAX_BYTES: usize = 4096;

/// Text of a pattern of at least a length; `None` if its syntax is another one, or no text was found.
pub(super) fn text(pattern: &str, min_chars: usize) -> Option<String> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).nest_limit(50).build();
    let hir = parser.parse(pattern).ok()?;
    // Repetitions without an end fill up what is missing.
    for more in [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        let (mut out, mut left) = (Vec::new(), MAX_PARTS);
        push(&hir, more, &mut left, &mut out)?;
        let made = String::from_utf8(out).ok()?;
        if made.chars().count() >= min_chars {
            return Some(made);
        }
    }
    None
}

fn push(hir: &Hir, more: u32, left: &mut u32, out: &mut Vec<u8>) -> Option<()> {
    *left = left.checked_sub(1)?;
    if out.len() > MAX_BYTES {
        return None;
    }
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
        HirKind::Class(class) => out.push(member(class)?),
        // The anchors hold where the whole text is made of the pattern.
        HirKind::Look(Look::Start | Look::End) => {}
        HirKind::Look(_) => return None,
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.saturating_add(more).min(most) {
                push(&repetition.sub, more, left, out)?;
            }
        }
        HirKind::Capture(capture) => push(&capture.sub, more, left, out)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| push(part, more, left, out))?,
        HirKind::Alternation(parts) => push(parts.first()?, more, left, out)?,
    }
    Some(())
}

/// Character of a class: a letter or a digit where it has one.
fn member(class: &Class) -> Option<u8> {
    let Class::Bytes(class) = class else { return None };
    let has = |byte: &u8| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(byte));
    (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'1'..=b'9').chain(b'0'..=b'0').chain(b' '..=b'~').find(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_patterns() {
        for (pattern, least, expected) in [
            ("^[A-Z]{3}-\\d+$", 0, "AAA-1"),
            ("^[A-Z]{3}-\\d+$", 8, "AAA-11111"),
            ("^(foo|bar)?x$", 4, "foox"),
            ("^\\+?[0-9]{10,}$", 0, "1111111111"),
            ("^[^a-z]$", 0, "A"),
        ] {
            assert_eq!(text(pattern, least).as_deref(), Some(expected), "{pattern}");
        }
        for other in ["^(?=x)a", "(", "\\bword", "^a$x{0}^b$\\B"] {
            assert_eq!(text(other, 0), None, "{other}");
        }
        assert!(text("^a{1000}$", 0).is_some());
        assert!(text("^(a{0}b{0}){1000000}c$", 0).is_none_or(|text| text == "c"));
    }
}

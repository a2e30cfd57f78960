//! Fields `{name}` in texts, which are filled in later.

/// A field of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder<'t> {
    /// Name, without braces.
    pub name: &'t str,
    /// Offset of the opening brace.
    pub start: usize,
    /// Offset behind the closing brace.
    pub end: usize,
}

/// Fields of a text, in order. Other braces, which are common in JSON and in many languages, are text: a name has one
/// character or more, and all are accepted by `is_part`, which accepts no brace. Takes linear time.
pub fn placeholders(text: &str, is_part: fn(char) -> bool) -> impl Iterator<Item = Placeholder<'_>> {
    text.match_indices('{').filter_map(move |(start, _)| {
        let inside = &text[start + 1..];
        let name = &inside[..inside.find(|c: char| !is_part(c)).unwrap_or(inside.len())];
        let is_closed = !name.is_empty() && inside[name.len()..].starts_with('}');
        is_closed.then_some(Placeholder { name, start, end: start + name.len() + 2 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_part(c: char) -> bool {
        c.is_ascii_lowercase()
    }

    #[test]
    fn names_in_braces_are_fields_and_other_braces_are_text() {
        let names = |text| placeholders(text, is_part).map(|field| field.name).collect::<Vec<_>>();
        assert_eq!(names("{a} {b}{c} {{d}} {} { e } {E} {f g} {h"), ["a", "b", "c", "d"]);
        let field = placeholders("\u{e4}{a}", is_part).next();
        assert_eq!(field, Some(Placeholder { name: "a", start: 2, end: 5 }));
        assert_eq!(names(&"{".repeat(1 << 20)), [""; 0]);
    }

    proptest! {
        #[test]
        fn a_field_is_its_name_in_braces(text in "[{}ab\u{e4} ]{0,30}") {
            let mut last = 0;
            for Placeholder { name, start, end } in placeholders(&text, is_part) {
                prop_assert_eq!(&text[start..end], format!("{{{name}}}"));
                prop_assert!(start >= last);
                last = end;
            }
        }
    }
}

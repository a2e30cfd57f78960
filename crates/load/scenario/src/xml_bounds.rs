//! Bounds of XML texts before they are parsed.
//!
//! Parsers compare each attribute of an element with all others of it, and each namespace with those that are in force: a
//! file of a megabyte with one element would take half a minute. Texts within these bounds take time linear in their
//! length.

use std::fmt;

/// Maximum number of attributes of one element, of which files that people write have a dozen.
pub const MAX_ATTRIBUTES: usize = 1_000;
/// Maximum number of declarations of namespaces in a text.
pub const MAX_NAMESPACES: usize = 1_000;

/// Text that is beyond a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlExcess {
    /// Line of the element, from 1 on.
    pub line: u32,
    what: &'static str,
    max: usize,
}

impl fmt::Display for XmlExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} {}", self.max, self.what)
    }
}

/// Checks a text, which need not be well-formed.
///
/// # Errors
/// The first element that is beyond a bound.
pub fn check_xml(text: &str) -> Result<(), XmlExcess> {
    let bytes = text.as_bytes();
    let (mut at, mut namespaces) = (0, 0);
    let line = |at: usize| u32::try_from(bytes[..at].iter().filter(|b| **b == b'\n').count() + 1).unwrap_or(u32::MAX);
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'<') {
        let start = at + offset;
        let rest = &bytes[start..];
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")].into_iter().find_map(|(begin, end)| {
            let inside = rest.strip_prefix(begin.as_bytes())?;
            let length = inside.windows(end.len()).position(|part| part == end.as_bytes());
            Some(length.map_or(rest.len(), |length| begin.len() + length + end.len()))
        });
        if let Some(length) = skipped {
            at = start + length;
            continue;
        }
        // An entity is elements in quotes.
        let has_elements = rest.starts_with(b"<!");
        let (mut attributes, mut quote, mut end) = (0, None, start + 1);
        while let Some(byte) = bytes.get(end) {
            match (quote, byte) {
                (Some(open), byte) if open == *byte => quote = None,
                (Some(_), b'=') if has_elements => attributes += 1,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(*byte),
                (None, b'>') => break,
                (None, b'=') => {
                    attributes += 1;
                    namespaces += usize::from(is_namespace(&bytes[start..end]));
                }
                (None, _) => {}
            }
            if attributes > MAX_ATTRIBUTES {
                return Err(XmlExcess { line: line(start), what: "attributes of one element", max: MAX_ATTRIBUTES });
            }
            if namespaces > MAX_NAMESPACES {
                return Err(XmlExcess { line: line(start), what: "namespaces", max: MAX_NAMESPACES });
            }
            end += 1;
        }
        at = end;
    }
    Ok(())
}

/// Whether a tag that is read up to an equals sign ends with the name of a namespace: `xmlns`, `xmlns:a`.
fn is_namespace(tag: &[u8]) -> bool {
    let name = tag.trim_ascii_end().rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    name.starts_with(b"xmlns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_a_bounded_number_of_attributes() {
        let attributes = |count: usize| (0..count).map(|n| format!(" a{n}='>='")).collect::<String>();
        assert_eq!(check_xml(&format!("<a>\n<b{}/></a>", attributes(MAX_ATTRIBUTES))), Ok(()));
        let excess = check_xml(&format!("<a>\n<b{}/></a>", attributes(MAX_ATTRIBUTES + 1))).unwrap_err();
        assert_eq!((excess.line, excess.to_string().as_str()), (2, "more than 1000 attributes of one element"));
        let many = "<a b='1'>=</a>".repeat(5_000);
        assert_eq!(check_xml(&format!("<?x {0}?><!--{0}--><r><![CDATA[<{0}]]>{many}", attributes(2_000))), Ok(()));
        let nested: String = (0..=MAX_NAMESPACES).map(|n| format!("<a xmlns:n{n}='x'>")).collect();
        assert_eq!(check_xml(&nested).unwrap_err().to_string(), "more than 1000 namespaces");
        let entity = format!("<!DOCTYPE r [<!ENTITY e \"<a{}/>\">]><r>&e;</r>", attributes(MAX_ATTRIBUTES + 1));
        assert!(check_xml(&entity).is_err());
        for broken in ["<", "<!--", "<a b='", "<?", "<![CDATA[", "<a b=\"<>"] {
            assert_eq!(check_xml(broken), Ok(()), "{broken}");
        }
    }
}

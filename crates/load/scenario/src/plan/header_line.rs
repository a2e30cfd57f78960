//! Header lines that are one template, `name: value`.

use weir_hurl::{FieldTemplate, Template, TemplatePart};

/// Name and value of a header line; none without a colon.
pub(super) fn split_header(line: &Template) -> Option<FieldTemplate> {
    let mut name = Template { parts: Vec::new(), position: line.position };
    let mut parts = line.parts.iter();
    for part in parts.by_ref() {
        let TemplatePart::Text(text) = part else {
            name.parts.push(part.clone());
            continue;
        };
        let Some((before, after)) = text.split_once(':') else {
            name.parts.push(part.clone());
            continue;
        };
        let text_part = |text: &str| (!text.is_empty()).then(|| TemplatePart::Text(text.to_owned()));
        name.parts.extend(text_part(before.trim_end()));
        let after = text_part(after.trim_start());
        let value = after.into_iter().chain(parts.cloned()).collect();
        return Some(FieldTemplate { name, value: Template { parts: value, position: line.position } });
    }
    None
}

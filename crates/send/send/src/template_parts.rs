//! Parts of a job's request that are templates. All others are data, which is sent as it is: a job may have the text of a
//! stranger, and `{key}` in it must not become an API key.

use serde::{Deserialize, Serialize};

use super::template::has_fields;

/// Parts with fields to fill in; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateParts {
    /// Length of the beginning of the URL that is a template, in bytes.
    #[serde(default, rename = "url", skip_serializing_if = "is_zero")]
    pub url_bytes: usize,
    /// Indexes of headers whose values are templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<usize>,
    /// Body.
    #[serde(default, skip_serializing_if = "JobBodyKind::is_data")]
    pub body: JobBodyKind,
}

/// Whether a body is a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobBodyKind {
    /// No.
    #[default]
    Data,
    /// Yes.
    Template,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(length: &usize) -> bool {
    *length == 0
}

impl JobBodyKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_data(&self) -> bool {
        *self == Self::Data
    }
}

impl TemplateParts {
    /// Makes this beginning of the URL a template, if it has fields.
    pub fn add_url(&mut self, url: &str, length: usize) {
        self.url_bytes = if url.get(..length).is_some_and(has_fields) { length } else { 0 };
    }

    /// Makes the value of the header with this index a template, if it has fields.
    pub fn add_header(&mut self, index: usize, value: &str) {
        if has_fields(value) && !self.headers.contains(&index) {
            self.headers.push(index);
        }
    }

    /// Text in a store.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parts of a stored request. A text that was edited by hand may be anything: nothing is filled in then.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_parts_are_read_back() {
        let parts = TemplateParts { url_bytes: 9, headers: vec![0, 2], body: JobBodyKind::Template };
        assert_eq!(TemplateParts::read(&parts.to_text()), parts);
        assert_eq!(TemplateParts::default().to_text(), "{}");
        assert_eq!(TemplateParts::read("else"), TemplateParts::default());
    }
}

//! Parts of a job's request that are templates. All others are data, which is sent as it is: a job may have the text of a
//! stranger, and `{key}` in it must not become an API key.

use serde::{Deserialize, Serialize};

use super::job::JobRequest;
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
    #[serde(default, skip_serializing_if = "BodyTemplate::is_data")]
    pub body: BodyTemplate,
}

/// Whether a body is a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyTemplate {
    /// No.
    #[default]
    Data,
    /// Yes.
    Template,
    /// A version of weir stored it that filled in all bodies: its sender decides.
    Unstated,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(length: &usize) -> bool {
    *length == 0
}

impl BodyTemplate {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_data(&self) -> bool {
        *self == Self::Data
    }
}

impl TemplateParts {
    /// Parts of a request that a version stored which did not record them: URL and headers were templates. Bodies were,
    /// too, but may be of strangers.
    pub(super) fn of_earlier_version(url: &str, headers: &[(String, String)]) -> Self {
        let mut parts = Self { body: BodyTemplate::Unstated, ..Self::default() };
        parts.add_url(url, url.len());
        for (index, (_, value)) in headers.iter().enumerate() {
            parts.add_header(index, value);
        }
        parts
    }

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

    /// Parts of a stored request; None if the store has none.
    pub(super) fn read(text: Option<&str>, url: &str, headers: &[(String, String)]) -> Self {
        // A text of a later version, or edited by hand: nothing is filled in.
        text.map_or_else(
            || Self::of_earlier_version(url, headers),
            |text| serde_json::from_str(text).unwrap_or_default(),
        )
    }
}

impl JobRequest {
    /// URL: the part that is a template, and the rest.
    pub(super) fn url_parts(&self) -> (&str, &str) {
        self.url.split_at_checked(self.templates.url_bytes).unwrap_or(("", &self.url))
    }

    /// Whether the body is a template; `unstated` if that is not stated.
    pub(super) fn is_body_template(&self, unstated: bool) -> bool {
        match self.templates.body {
            BodyTemplate::Data => false,
            BodyTemplate::Template => true,
            BodyTemplate::Unstated => unstated,
        }
    }

    /// Texts that are templates; the body only with `unstated_body` if it is not stated.
    pub(super) fn template_texts(&self, unstated_body: bool) -> impl Iterator<Item = &str> {
        let headers = self.templates.headers.iter().filter_map(|index| self.headers.get(*index));
        let body = if self.is_body_template(unstated_body) { std::str::from_utf8(&self.body).ok() } else { None };
        [self.url_parts().0].into_iter().chain(headers.map(|(_, value)| value.as_str())).chain(body)
    }

    /// Place of a field in the data of the URL or of a header, which is sent as it is: probably meant as a template.
    pub fn literal_field(&self) -> Option<&'static str> {
        let is_data = |index: &usize| !self.templates.headers.contains(index);
        let mut headers = self.headers.iter().enumerate().filter(|(index, _)| is_data(index)).map(|(_, header)| header);
        if has_fields(self.url_parts().1) {
            Some("URL")
        } else {
            headers.any(|(_, value)| has_fields(value)).then_some("header")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_parts_are_read_back_and_those_of_earlier_versions_are_url_and_headers() {
        let parts = TemplateParts { url_bytes: 9, headers: vec![0, 2], body: BodyTemplate::Template };
        assert_eq!(TemplateParts::read(Some(&parts.to_text()), "", &[]), parts);
        assert_eq!(TemplateParts::default().to_text(), "{}");
        let header = |value: &str| ("x-a".to_owned(), value.to_owned());
        let headers = [header("{id}"), header("{other}"), header("a {key}")];
        let earlier = TemplateParts::read(None, "http://h/{id}", &headers);
        assert_eq!(earlier, TemplateParts { url_bytes: 13, headers: vec![0, 2], body: BodyTemplate::Unstated });
        assert_eq!(TemplateParts::read(Some("else"), "http://h/{id}", &headers), TemplateParts::default());
    }

    #[test]
    fn a_field_in_data_is_found() {
        let mut request = JobRequest { url: "http://h/{id}/{key}".into(), ..JobRequest::default() };
        request.templates.add_url("http://h/{id}/{key}", 13);
        assert_eq!(request.literal_field(), Some("URL"));
        assert_eq!(request.template_texts(false).collect::<Vec<_>>(), ["http://h/{id}"]);
        let headers = vec![("x-a".to_owned(), "{nonce}".to_owned())];
        let request = JobRequest { url: "http://h/{other}".into(), headers, ..JobRequest::default() };
        assert_eq!(request.literal_field(), Some("header"));
    }
}

//! The caller's certificate in headers for upstreams.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::config::ClientCertificateHeaders;
use super::forwarding_names::has_same_spelling;
use weir_base::percent;
use weir_base::percent::AsciiSet;
use weir_server::tls::ClientIdentity;

impl ClientCertificateHeaders {
    /// Sets the headers. Those of the caller are removed, in all spellings that an upstream might accept; a trusted proxy's
    /// are kept if it has shown no certificate itself.
    pub(super) fn apply(&self, headers: &mut HeaderMap, client: Option<&ClientIdentity>, is_trusted: bool) {
        if client.is_none() && is_trusted {
            return;
        }
        for (field, name) in &self.0 {
            let forged: Vec<HeaderName> =
                headers.keys().filter(|given| has_same_spelling(given.as_str(), name.as_str())).cloned().collect();
            for given in forged {
                headers.remove(given);
            }
            let values = client.map(|client| field.values(client)).unwrap_or_default();
            if let Some(value) = list_value(&values) {
                headers.insert(name, value);
            }
        }
    }

    /// Whether no header is set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a name is one of these headers to an upstream.
    pub(super) fn has_name(&self, given: &HeaderName) -> bool {
        self.0.iter().any(|(_, name)| has_same_spelling(given.as_str(), name.as_str()))
    }
}

/// What is escaped in a value: all but printable ASCII, and `%`.
const ESCAPED: &AsciiSet = &percent::CONTROLS.add(b'%');
/// What is escaped in one of several values.
const ESCAPED_IN_LIST: &AsciiSet = &ESCAPED.add(b',');

/// Values as a list; None without any. What is not printable ASCII, `%`, and commas of several values are
/// percent-encoded, so that no value can end the header or look like two.
fn list_value(values: &[&str]) -> Option<HeaderValue> {
    let escaped = if values.len() > 1 { ESCAPED_IN_LIST } else { ESCAPED };
    let values_text: Vec<String> = values.iter().map(|value| percent::encoded(value.as_bytes(), escaped)).collect();
    let text = values_text.join(",");
    HeaderValue::from_str(&text).ok().filter(|_| !values.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::CertificateField;

    fn rule() -> ClientCertificateHeaders {
        ClientCertificateHeaders(vec![
            (CertificateField::Subject, HeaderName::from_static("x-client-subject")),
            (CertificateField::AlternativeName, HeaderName::from_static("x-client-san")),
        ])
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn forged_headers_are_replaced_or_removed_in_all_spellings() {
        let forged = [("x-client-subject", "CN=admin"), ("x_client-subject", "CN=admin"), ("x-client-san", "admin")];
        let mut without = headers(&forged);
        rule().apply(&mut without, None, false);
        assert_eq!(without, headers(&[]));
        let client = ClientIdentity {
            subject: "CN=b\u{e9}%,O=Example".to_owned(),
            common_name: None,
            alternative_names: vec!["a.example".to_owned(), "spiffe://x/a,b\r\n".to_owned()],
        };
        for is_trusted in [false, true] {
            let mut with = headers(&forged);
            rule().apply(&mut with, Some(&client), is_trusted);
            let own =
                [("x-client-subject", "CN=b%C3%A9%25,O=Example"), ("x-client-san", "a.example,spiffe://x/a%2Cb%0D%0A")];
            assert_eq!(with, headers(&own));
        }
        let mut of_proxy = headers(&forged);
        rule().apply(&mut of_proxy, None, true);
        assert_eq!(of_proxy, headers(&forged));
    }

    #[test]
    fn trailers_of_these_names_are_found_in_all_spellings() {
        for (name, expected) in [("x-client-san", true), ("x_client_san", true), ("x-client-sans", false)] {
            assert_eq!(rule().has_name(&HeaderName::from_static(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_certificate_without_the_field_has_no_header() {
        let mut all = headers(&[("x-client-san", "admin")]);
        rule().apply(&mut all, Some(&ClientIdentity::default()), false);
        assert_eq!(all, headers(&[]));
    }
}

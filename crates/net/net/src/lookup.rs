//! Look-ups of header fields where a message has few.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Number of fields up to which comparing them costs less than a hash of the name.
const FEW_FIELDS: usize = 4;

/// The first value of a field. A gateway keeps few fields of most messages as headers, and looks for ten.
pub fn field<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    if headers.len() > FEW_FIELDS {
        return headers.get(name);
    }
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Whether there is a field of this name.
pub fn has_field(headers: &HeaderMap, name: &HeaderName) -> bool {
    field(headers, name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_among_few_and_many() {
        for others in [0, 2, 20] {
            let mut headers = HeaderMap::new();
            for name in (0..others).filter_map(|number| HeaderName::try_from(format!("x-{number}")).ok()) {
                headers.append(name, HeaderValue::from_static("other"));
            }
            assert!(!has_field(&headers, &http::header::TE));
            headers.append(http::header::TE, HeaderValue::from_static("first"));
            headers.append(http::header::TE, HeaderValue::from_static("second"));
            assert_eq!(field(&headers, &http::header::TE), headers.get(http::header::TE));
        }
    }
}

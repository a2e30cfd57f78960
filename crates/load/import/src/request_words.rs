//! Words of requests that a machine may have made.

use crate::builder::percent_decoded;
use crate::recorded::is_made;
use crate::request::ImportedRequest;

/// Words of a request that a machine may have made.
pub(crate) fn words(request: &ImportedRequest) -> Vec<String> {
    let mut found = Vec::new();
    for fixed in request.texts().into_iter().flat_map(|text| &text.parts) {
        let weir_hurl::TemplatePart::Text(fixed) = fixed else { continue };
        if fixed.len() > 1 << 20 {
            continue;
        }
        let separators = |c: char| c.is_whitespace() || "/?&=;,\"'<>(){}[]|\\".contains(c);
        for word in fixed.split(separators) {
            for word in [word, word.split(':').next_back().unwrap_or_default()] {
                if is_made(word) {
                    found.push(word.to_owned());
                    found.extend(percent_decoded(word).filter(|decoded| decoded != word));
                }
            }
        }
        // Values with separators in them are whole values of parameters and fields.
        if is_made(fixed) {
            found.push(fixed.clone());
        }
        for value in fixed.split(['&', ' ', '"']).filter_map(|pair| pair.split_once('=')).map(|(_, value)| value) {
            if is_made(value) {
                found.push(value.to_owned());
                found.extend(percent_decoded(value));
            }
        }
    }
    found
}

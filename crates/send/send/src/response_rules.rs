//! Classification of responses: what each means for its job and its key.

use std::fmt;
use std::ops::RangeInclusive;

use http::HeaderMap;

use weir_delivery::dispatch::ResponseClass;

/// Check of the content of a response with a status of success.
pub trait ResponseCheck: fmt::Debug + Send + Sync {
    /// Checks a response.
    ///
    /// # Errors
    /// The check that fails, in prose, without values of the response: failures are counted by it.
    fn check(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<(), String>;
}

/// Rules of the classification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRules {
    /// Ranges of the statuses of success.
    pub success: Vec<RangeInclusive<u16>>,
    /// Text in the body of a 400 that is about the nonce; empty for none.
    pub invalid_nonce_text: String,
    /// Text in the body of a 429 that disables the key; empty for none.
    pub blocked_text: String,
    /// Whether a 401 disables the key instead of failing the job.
    pub unauthorized_blames_key: bool,
}

impl Default for ResponseRules {
    fn default() -> Self {
        Self {
            success: vec![200..=299],
            invalid_nonce_text: "nonce".into(),
            blocked_text: "blocked".into(),
            unauthorized_blames_key: true,
        }
    }
}

impl ResponseRules {
    /// Class of a response.
    pub fn classify(&self, status: u16, body: &[u8]) -> ResponseClass {
        if self.success.iter().any(|range| range.contains(&status)) {
            return ResponseClass::Done;
        }
        match ResponseClass::of(status) {
            ResponseClass::Done => ResponseClass::Failed(status),
            ResponseClass::RateLimited if contains_text(body, &self.blocked_text) => ResponseClass::Blocked,
            ResponseClass::Failed(400) if contains_text(body, &self.invalid_nonce_text) => ResponseClass::InvalidNonce,
            ResponseClass::Unauthorized if !self.unauthorized_blames_key => ResponseClass::Failed(status),
            class => class,
        }
    }
}

/// Whether the text contains the word, ignoring ASCII case.
fn contains_text(text: &[u8], word: &str) -> bool {
    !word.is_empty() && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_classified_by_its_status_and_its_body() {
        let rules = ResponseRules::default();
        assert_eq!(rules.classify(204, b""), ResponseClass::Done);
        assert_eq!(rules.classify(400, b"{\"error_msg\":\"Invalid Nonce\"}"), ResponseClass::InvalidNonce);
        assert_eq!(rules.classify(400, b"bad"), ResponseClass::Failed(400));
        assert_eq!(rules.classify(429, b"slow down"), ResponseClass::RateLimited);
        assert_eq!(rules.classify(429, b"too many: blocked"), ResponseClass::Blocked);
        assert_eq!(rules.classify(401, b""), ResponseClass::Unauthorized);
        let other = ResponseRules { success: vec![202..=202, 404..=404], unauthorized_blames_key: false, ..rules };
        assert_eq!(other.classify(404, b""), ResponseClass::Done);
        assert_eq!(other.classify(200, b""), ResponseClass::Failed(200));
        assert_eq!(other.classify(401, b""), ResponseClass::Failed(401));
    }
}

//! What an answer means for its job and its key.

use crate::decide::dispatch::Meaning;

/// What tells one kind of answer from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judge {
    /// Statuses of success, as inclusive ranges.
    pub success: Vec<(u16, u16)>,
    /// A 400 with this in its body is about the nonce; empty: none is.
    pub overtaken: String,
    /// A 429 with this in its body is the last word about the key; empty: none is.
    pub blocked: String,
    /// A 401 is about the key, and not about the job.
    pub keyed: bool,
}

impl Default for Judge {
    fn default() -> Self {
        Self { success: vec![(200, 299)], overtaken: "nonce".into(), blocked: "blocked".into(), keyed: true }
    }
}

impl Judge {
    /// What an answer means.
    pub fn meaning(&self, status: u16, body: &[u8]) -> Meaning {
        if self.success.iter().any(|(low, high)| (*low..=*high).contains(&status)) {
            return Meaning::Done;
        }
        match Meaning::of(status) {
            Meaning::Done => Meaning::Failed(status),
            Meaning::Refused if holds(body, &self.blocked) => Meaning::Blocked,
            Meaning::Failed(400) if holds(body, &self.overtaken) => Meaning::Overtaken,
            Meaning::Unauthorized if !self.keyed => Meaning::Failed(status),
            meaning => meaning,
        }
    }
}

/// Whether the word is in the text, whatever its case.
fn holds(text: &[u8], word: &str) -> bool {
    !word.is_empty() && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_their_status_and_their_words_say() {
        let judge = Judge::default();
        assert_eq!(judge.meaning(204, b""), Meaning::Done);
        assert_eq!(judge.meaning(400, b"{\"error_msg\":\"Invalid Nonce\"}"), Meaning::Overtaken);
        assert_eq!(judge.meaning(400, b"bad"), Meaning::Failed(400));
        assert_eq!(judge.meaning(429, b"slow down"), Meaning::Refused);
        assert_eq!(judge.meaning(429, b"too many: blocked"), Meaning::Blocked);
        assert_eq!(judge.meaning(401, b""), Meaning::Unauthorized);
        let other = Judge { success: vec![(202, 202), (404, 404)], keyed: false, ..judge };
        assert_eq!(other.meaning(404, b""), Meaning::Done);
        assert_eq!(other.meaning(200, b""), Meaning::Failed(200));
        assert_eq!(other.meaning(401, b""), Meaning::Failed(401));
    }
}

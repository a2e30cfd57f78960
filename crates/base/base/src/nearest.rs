//! The word that was probably meant, for "did you mean".

/// Longest word that is compared, in bytes: a longer one is not a typing error, and its distance takes quadratic time.
const MAX_WORD_BYTES: usize = 64;

/// Known word that is most similar to `given`, if one is similar enough for a typing error. Upper and lower case are
/// equal, as `_` and `-` are.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if given.is_empty() || given.len() > MAX_WORD_BYTES {
        return None;
    }
    let max_distance = (given.chars().count() / 3).max(1);
    let plain = |word: &str| word.to_lowercase().replace('_', "-");
    let given = plain(given);
    let words = known.into_iter().filter(|word| word.len() <= MAX_WORD_BYTES);
    let near = words.map(|word| (strsim::osa_distance(&given, &plain(word)), word));
    near.filter(|(distance, _)| *distance <= max_distance).min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_has_a_suggestion() {
        let known = ["deadline", "stages", "retry", "max-redirs", "toDate", "max_in_flight"];
        for (given, meant) in [
            ("deadlin", Some("deadline")),
            ("staegs", Some("stages")),
            ("DEADLINE", Some("deadline")),
            ("max_redirs", Some("max-redirs")),
            ("max-in-flight", Some("max_in_flight")),
            ("todate", Some("toDate")),
            ("budget", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
        assert_eq!(nearest(&"j".repeat(1000), known), None);
        assert_eq!(nearest("j", ["k".repeat(1000).as_str()]), None);
    }
}

//! Variables without a value, as one mistake that names each of them once.

use weir_hurl::{ParseError, TextPosition};

/// Expectation in messages about variables that nothing defines.
pub(super) const DEFINED: &str = "a variable that is defined before";
/// Beginning of the hint about a variable whose name is nearly that of another.
pub(super) const NEARLY: &str = "did you mean ";

/// Places of one variable, and variables, that a mistake lists.
const MAX_PLACES: usize = 5;
const MAX_NAMES: usize = 20;

/// Mistakes of a file, in which all uses of variables that have no value are one. What looks like a typing error stays.
pub fn merge_missing_values(errors: &[ParseError]) -> Vec<ParseError> {
    let is_missing = |error: &&ParseError| error.expected == DEFINED && !error.hint.starts_with(NEARLY);
    let mut names: Vec<(&str, Vec<TextPosition>)> = Vec::new();
    for error in errors.iter().filter(is_missing) {
        match names.iter_mut().find(|(name, _)| *name == error.found) {
            Some((_, places)) => places.push(error.position),
            None => names.push((&error.found, vec![error.position])),
        }
    }
    let Some(first) = errors.iter().find(is_missing).filter(|_| errors.iter().filter(is_missing).count() > 1) else {
        return errors.to_vec();
    };
    let all = ParseError {
        position: first.position,
        expected: "a value for each variable".into(),
        found: format!("none for {}", listed(&names)),
        hint: format!("give --variable {}=..., or --data FILE with such a column", bare(&first.found)),
    };
    let others = errors.iter().filter(|error| !is_missing(error)).cloned();
    let mut merged: Vec<ParseError> = others.chain([all]).collect();
    merged.sort_by_key(|error| error.position);
    merged
}

/// `host (2:8, 9:7), user (3:13)`.
fn listed(names: &[(&str, Vec<TextPosition>)]) -> String {
    let of_name = |(name, places): &(&str, Vec<TextPosition>)| {
        let mut shown: Vec<String> = places.iter().take(MAX_PLACES).map(ToString::to_string).collect();
        shown.extend((places.len() > MAX_PLACES).then(|| "...".to_owned()));
        format!("{} ({})", bare(name), shown.join(", "))
    };
    let mut shown: Vec<String> = names.iter().take(MAX_NAMES).map(of_name).collect();
    shown.extend((names.len() > MAX_NAMES).then(|| format!("{} more", names.len() - MAX_NAMES)));
    shown.join(", ")
}

fn bare(name: &str) -> &str {
    name.trim_matches('\'')
}

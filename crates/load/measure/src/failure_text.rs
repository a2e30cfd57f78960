//! Failures of one kind as texts name them.

use std::fmt::Display;

/// Failures of a kind in a text: `31 x 503` if all have one status, else `40 5xx`; `3 timeout` without a status.
///
/// `statuses` are those of failed responses. The kind `5xx` counts statuses above 599 as well.
pub fn failure_text<'a>(count: impl Display, kind: &'a str, statuses: impl Iterator<Item = &'a str>) -> String {
    match failure_name(kind, statuses) {
        name if name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains("xx") => format!("{count} x {name}"),
        name => format!("{count} {name}"),
    }
}

/// Name of a kind of failures: the status if all have one, `5xx and above` if some statuses are above 599, else the kind.
pub fn failure_name<'a>(kind: &'a str, statuses: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(class) = kind.strip_suffix("xx") else { return kind };
    let is_of_class = |status: &&str| if class == "5" { *status >= "500" } else { status.starts_with(class) };
    let of_class: Vec<&str> = statuses.filter(is_of_class).collect();
    match of_class.as_slice() {
        [only] => only,
        several if several.iter().any(|status| *status >= "600") => "5xx and above",
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::failure_text;

    #[test]
    fn a_class_of_statuses_is_named_by_its_status_if_there_is_one() {
        for (kind, statuses, text) in [
            ("5xx", &["200", "503"][..], "1,204 x 503"),
            ("5xx", &["500", "503", "404"], "1,204 5xx"),
            ("4xx", &["404", "503"], "1,204 x 404"),
            ("5xx", &["999"], "1,204 x 999"),
            ("5xx", &["500", "600"], "1,204 5xx and above"),
            ("4xx", &[], "1,204 4xx"),
            ("timeout", &["504"], "1,204 timeout"),
        ] {
            assert_eq!(failure_text("1,204", kind, statuses.iter().copied()), text, "{kind} {statuses:?}");
        }
    }
}

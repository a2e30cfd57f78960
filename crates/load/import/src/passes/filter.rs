//! Choice of steps.

use crate::address;
use crate::collection::Import;
use crate::request::ImportedStep;
use crate::text;

/// Drops the steps that none of the words chooses. Nothing is chosen without words: all steps stay.
pub(super) fn choose(import: &mut Import, only: &[String]) {
    if only.is_empty() {
        return;
    }
    // Each step with its place, and whether it is chosen.
    let mut places: Vec<(String, u32, bool)> = Vec::new();
    for scenario in &mut import.scenarios {
        scenario.steps.retain(|step| {
            let chosen = only.iter().any(|word| is_chosen(step, word));
            places.push((step.file.clone(), step.line, chosen));
            chosen
        });
    }
    // An omission belongs to the last step before it.
    import.omissions.retain(|omission| {
        let before = places.iter().filter(|(file, line, _)| *file == omission.file && *line <= omission.line);
        before.max_by_key(|(_, line, _)| *line).is_some_and(|(_, _, chosen)| *chosen)
    });
}

/// Whether a word is a tag, a name, a host, or the beginning of a path, in any case; `*` stands for any text.
fn is_chosen(step: &ImportedStep, word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    let url = text::source(&step.request.url);
    let (host, path) = parts(&url);
    let line = format!("{} {path}", step.request.method).to_ascii_lowercase();
    let own = step.tags.iter().chain([&step.name]).map(|tag| tag.to_ascii_lowercase());
    own.chain([host.clone(), path.clone(), line]).any(|text| matches(&word, &text)) || is_below(&path, &word)
}

/// Host and path of a URL, in small letters.
fn parts(url: &str) -> (String, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.strip_prefix(&format!("{{{{{}}}}}", address::BASE_URL)).unwrap_or(rest);
    let at = rest.find('/').unwrap_or(rest.len());
    let path = rest[at..].split('?').next().unwrap_or_default();
    (rest[..at].to_ascii_lowercase(), path.to_ascii_lowercase())
}

fn is_below(path: &str, prefix: &str) -> bool {
    prefix.starts_with('/')
        && path
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// Whether a text matches a pattern with `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use weir_hurl::Template;

    use super::*;

    #[test]
    fn steps_are_chosen_by_tag_name_path_and_host() {
        let mut step = ImportedStep { name: "List items".into(), tags: vec!["shop".into()], ..ImportedStep::default() };
        step.request.method = "GET".into();
        step.request.url = Template::text("http://h.example:80/v1/items?x=1");
        for (word, expected) in [
            ("shop", true),
            ("list ITEMS", true),
            ("/v1", true),
            ("/v1/it", false),
            ("/v1/*", true),
            ("*.example*", true),
            ("get /v1/items", true),
            ("other", false),
        ] {
            assert_eq!(is_chosen(&step, word), expected, "{word}");
        }
    }
}

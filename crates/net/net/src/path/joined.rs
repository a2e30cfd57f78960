//! Paths that are made of a template and of parts of another path.

use std::borrow::Cow;

use super::parameters::{is_dots_with_parameters, is_parameters_alone};
use super::{AmbiguousPath, PathRule, normalize};

/// The normal form of a path that was put together from parts in normal form. Parts that meet may form something else:
/// slashes that meet become one; a dot segment, or one of parameters, is not what either part was compared as.
///
/// # Errors
/// Ambiguity that joining the parts has formed, unless the rule accepts it; a dot segment always.
pub fn normalize_joined(path: &str, rule: PathRule) -> Result<Cow<'_, str>, AmbiguousPath> {
    // Escapes are those of the parts: a template may have what callers may not.
    let normal = normalize(path, PathRule { pass_ambiguous: true, ..rule })?;
    for segment in path.split('/').map(str::as_bytes) {
        if !rule.pass_ambiguous && is_dots_with_parameters(segment) {
            return Err(AmbiguousPath::DotParameters);
        }
        if !rule.passes_parameters() && is_parameters_alone(segment) {
            return Err(AmbiguousPath::Parameters);
        }
    }
    if normal == path || rule.merge_slashes && normal == merge_slashes(path) {
        return Ok(normal);
    }
    Err(AmbiguousPath::DotSegment)
}

/// Whether the fixed text of a template is in normal form, so that only captures can change it. Escaped slashes and NULs
/// are allowed: the text is not a caller's.
pub fn is_normal_template(template: &str, rule: PathRule) -> bool {
    let mut plain = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        // No digit of an escape.
        plain.push('x');
        rest = after.split_once('}').map_or("", |(_, behind)| behind);
    }
    plain.push_str(rest);
    normalize_joined(&plain, rule).is_ok_and(|normal| normal == plain)
}

fn merge_slashes(path: &str) -> String {
    let mut merged = String::with_capacity(path.len());
    for char in path.chars() {
        if char != '/' || !merged.ends_with('/') {
            merged.push(char);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_that_meet_form_nothing_but_single_slashes() {
        use AmbiguousPath::{DotParameters, DotSegment, Parameters};
        for (path, expected) in [
            ("/data/a", Ok("/data/a")),
            ("/data//a", Ok("/data/a")),
            ("/data///", Ok("/data/")),
            ("/data/..", Err(DotSegment)),
            ("/api/../secret", Err(DotSegment)),
            ("/api/./secret", Err(DotSegment)),
            ("/api/...", Ok("/api/...")),
            ("/api/..;x/secret", Err(DotParameters)),
            ("/api/.%3Bx/secret", Err(DotParameters)),
            ("/;x/secret", Err(Parameters)),
            ("/a;x/secret", Ok("/a;x/secret")),
            // The template's own.
            ("/a%2Fb/c", Ok("/a%2Fb/c")),
        ] {
            let found = normalize_joined(path, PathRule::default());
            assert_eq!(found.as_deref().map_err(|why| *why), expected, "{path}");
        }
        let kept = PathRule { merge_slashes: false, ..PathRule::default() };
        assert_eq!(normalize_joined("/a//b", kept).unwrap(), "/a//b");
        let passed = PathRule { pass_ambiguous: true, ..PathRule::default() };
        assert_eq!(normalize_joined("/;x/..;/b", passed).unwrap(), "/;x/..;/b");
        assert_eq!(normalize_joined("/a/../b", passed), Err(DotSegment));
    }

    #[test]
    fn a_template_is_in_normal_form_but_for_escaped_slashes() {
        for (template, is) in [
            ("/", true),
            ("/v2/{rest}", true),
            ("/{a}.{b}/c", true),
            ("/group%2Fproject/{rest}", true),
            ("/.{a}", true),
            ("/a//b", false),
            ("/a/../{b}", false),
            ("/a/./{b}", false),
            ("/%7E{a}", false),
            ("/a%{b}", false),
            ("/a%4{b}", false),
            ("/a%2f{b}", false),
            ("/;{a}", false),
        ] {
            assert_eq!(is_normal_template(template, PathRule::default()), is, "{template}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_every_reader_reads(
            template in "(/(a|\\.|\\.\\.|b\\.|\\{0\\}|\\{1\\}|\\{0\\}\\.|\\.\\{1\\}|\\{0\\}-\\{1\\}){0,2}){1,4}",
            captures in proptest::array::uniform2("(\\.|\\.\\.|;|\\.;|a|%3B|b/c|/|x\\.y){0,3}"),
            merge_slashes: bool,
        ) {
            let rule = PathRule { merge_slashes, ..PathRule::default() };
            let joined = template.replace("{0}", &captures[0]).replace("{1}", &captures[1]);
            if let Ok(sent) = normalize_joined(&joined, rule) {
                // Neither this gateway's rules nor those of a service that removes parameters first change it.
                prop_assert_eq!(normalize(&sent, rule).map(Cow::into_owned), Ok(sent.clone().into_owned()));
                let plain = super::super::without_parameters(&sent).unwrap_or_else(|| sent.clone().into_owned());
                let is_dots = |segment: &str| segment == "." || segment == "..";
                prop_assert!(!plain.split('/').any(is_dots), "{} of {}", sent, joined);
                prop_assert!(!merge_slashes || !plain.contains("//"), "{} of {}", sent, joined);
                prop_assert_eq!(sent.replace('/', ""), joined.replace('/', ""), "nothing but slashes has changed");
            }
        }
    }
}

//! Paths with captures, `/api/{name}/{id:[0-9]+}.json/{*rest}`, and templates that use them.

use regex::{Regex, RegexBuilder};
use weir_base::fault::Fault;
use weir_net::path::{PathRule, normalize, without_parameters};

/// Maximum size of a compiled expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

/// Maximum captures of a segment.
pub(crate) const MAX_SEGMENT_CAPTURES: usize = 16;

/// One segment of a route's path.
#[derive(Clone, Debug)]
pub(crate) enum PathSegment<'p> {
    /// Fixed text.
    Fixed(&'p str),
    /// A capture of the whole segment, by its name.
    Capture(&'p str),
    /// Text and captures, or a capture with an expression.
    Pattern(SegmentPattern<'p>),
    /// All that follows, by its name; the last one.
    Rest(&'p str),
}

/// A segment of text and captures.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPattern<'p> {
    /// Names of the captures, in order.
    pub(crate) names: Vec<&'p str>,
    /// The whole segment; capture k is the group `ck`. Segments with the same expression match the same texts.
    pub(crate) expression: Regex,
    /// Bytes of fixed text: a pattern with more of it is more specific.
    pub(crate) fixed_bytes: usize,
}

/// Fixed text, or a capture, within one segment of a path pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentPart<'p> {
    Text(&'p str),
    /// Name, and expression that the value must match.
    Capture(&'p str, Option<&'p str>),
}

fn invalid<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::new(what, r#"write it as "/fixed/{one}/{id:[0-9]+}/{*rest}""#))
}

/// The segments of a route's path.
///
/// # Errors
/// The fault, in words, and its remedy.
pub(crate) fn segments(path: &str) -> Result<Vec<PathSegment<'_>>, Fault> {
    let Some(inner) = path.strip_prefix('/') else { return invalid("a path begins with \"/\"") };
    let mut all: Vec<PathSegment<'_>> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for text in split_segments(inner)? {
        if let Some(PathSegment::Rest(name)) = all.last() {
            return invalid(format!("\"{{*{name}}}\" captures the rest of the path, and must be last"));
        }
        let segment = segment(text)?;
        let named: &[&str] = match &segment {
            PathSegment::Fixed(_) => &[],
            PathSegment::Capture(name) | PathSegment::Rest(name) => &[name],
            PathSegment::Pattern(pattern) => &pattern.names,
        };
        for name in named {
            if names.contains(name) {
                return invalid(format!("duplicate \"{{{name}}}\""));
            }
            names.push(name);
        }
        all.push(segment);
    }
    Ok(all)
}

/// The names of a path's captures, in order.
///
/// # Errors
/// The fault, in words, and its remedy.
pub(crate) fn captures(path: &str) -> Result<Vec<&str>, Fault> {
    let mut names = Vec::new();
    for segment in segments(path)? {
        match segment {
            PathSegment::Fixed(_) => {}
            PathSegment::Capture(name) | PathSegment::Rest(name) => names.push(name),
            PathSegment::Pattern(pattern) => names.extend(pattern.names),
        }
    }
    Ok(names)
}

/// Splits at slashes outside of braces.
fn split_segments(inner: &str) -> Result<Vec<&str>, Fault> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return invalid("unmatched \"}\""),
            b'}' => depth -= 1,
            b'/' if depth == 0 => {
                all.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return invalid("unmatched \"{\"");
    }
    all.push(&inner[from..]);
    Ok(all)
}

fn segment(text: &str) -> Result<PathSegment<'_>, Fault> {
    if let Some(name) = text.strip_prefix("{*").and_then(|rest| rest.strip_suffix('}')) {
        check_name(name, text)?;
        return Ok(PathSegment::Rest(name));
    }
    let parts = segment_parts(text)?;
    match parts.as_slice() {
        [] => Ok(PathSegment::Fixed("")),
        [SegmentPart::Text(text)] => Ok(PathSegment::Fixed(text)),
        [SegmentPart::Capture(name, None)] => Ok(PathSegment::Capture(name)),
        parts => segment_pattern(parts).map(PathSegment::Pattern),
    }
}

fn segment_parts(text: &str) -> Result<Vec<SegmentPart<'_>>, Fault> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (fixed, from) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !fixed.is_empty() {
            if !is_path(fixed) {
                return invalid(format!("invalid segment {text:?}"));
            }
            parts.push(SegmentPart::Text(fixed));
        }
        rest = from;
        let Some(end) = closing_brace(rest) else { continue };
        let inner = &rest[1..end];
        let (name, expression) = match inner.split_once(':') {
            Some((name, expression)) => (name, Some(expression)),
            None => (inner, None),
        };
        check_name(name, &rest[..=end])?;
        if let Some(SegmentPart::Capture(before, _)) = parts.last() {
            return invalid(format!("{{{before}}} and {{{name}}} have no text between them"));
        }
        parts.push(SegmentPart::Capture(name, expression));
        rest = &rest[end + 1..];
    }
    Ok(parts)
}

/// Position of the brace that closes the first one. Braces are balanced.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b'}' && depth == 0
    })
}

fn check_name(name: &str, shown: &str) -> Result<(), Fault> {
    if name.starts_with('*') {
        return invalid(format!("invalid segment {shown:?}: a capture of the rest has nothing beside it"));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return invalid(format!("invalid capture {shown:?}: a name has letters, digits and \"_\""));
    }
    Ok(())
}

fn segment_pattern<'p>(parts: &[SegmentPart<'p>]) -> Result<SegmentPattern<'p>, Fault> {
    let (mut source, mut names, mut fixed_bytes) = ("^".to_owned(), Vec::new(), 0);
    for part in parts {
        match part {
            SegmentPart::Text(text) => {
                fixed_bytes += text.len();
                source.push_str(&regex::escape(text));
            }
            SegmentPart::Capture(name, expression) => {
                if let Some(expression) = expression {
                    // Alone first: the error is then about what the user wrote, and it cannot leave its group.
                    compile(expression)?;
                }
                let number = names.len();
                if number == MAX_SEGMENT_CAPTURES {
                    return invalid(format!("more than {MAX_SEGMENT_CAPTURES} captures in a segment"));
                }
                source.push_str(&format!("(?P<c{number}>(?:{}))", expression.unwrap_or(".+?")));
                names.push(*name);
            }
        }
    }
    source.push('$');
    Ok(SegmentPattern { names, expression: compile(&source)?, fixed_bytes })
}

/// Compiles an expression of a path, a header or a query.
///
/// # Errors
/// The fault, in words, and its remedy.
pub(super) fn compile(expression: &str) -> Result<Regex, Fault> {
    let compiled = RegexBuilder::new(expression).size_limit(MAX_EXPRESSION_BYTES).build();
    compiled.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
        Fault::new(format!("invalid expression {expression:?}: {why}"), "write e.g. \"[0-9]+\"")
    })
}

/// Whether the path, its captures aside, is in normal form, so that requests can have it.
pub(super) fn is_normal(path: &str, rule: PathRule) -> bool {
    let Ok(segments) = path.strip_prefix('/').map_or(Ok(Vec::new()), split_segments) else { return true };
    let plain = |segment: &&str| {
        let parts = segment_parts(segment).unwrap_or_default();
        let text = |part: &SegmentPart<'_>| match part {
            SegmentPart::Text(text) => (*text).to_owned(),
            SegmentPart::Capture(..) => "x".to_owned(),
        };
        if segment.starts_with("{*") { "x".to_owned() } else { parts.iter().map(text).collect() }
    };
    let plain = format!("/{}", segments.iter().map(plain).collect::<Vec<String>>().join("/"));
    normalize(&plain, rule).is_ok_and(|normal| normal == plain)
}

/// Whether a segment without captures has parameters: requests of this path would be those of another one without them.
pub(super) fn has_parameters(path: &str) -> bool {
    segments(path).is_ok_and(|all| {
        all.iter().any(|segment| matches!(segment, PathSegment::Fixed(text) if without_parameters(text).is_some()))
    })
}

/// Validates a path or query that uses captures.
///
/// # Errors
/// The fault, in words, and its remedy.
pub(super) fn check_template(text: &str, captures: &[&str]) -> Result<(), Fault> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let open = rest[at..].strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let Some((name, after)) = open else {
            return Err(Fault::new("has an unmatched brace", "write captures as {name}"));
        };
        if !captures.contains(&name) {
            let known: Vec<String> = captures.iter().map(|name| format!("{{{name}}}")).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(Fault::new(format!("uses {{{name}}}, which the route's path does not have"), known));
        }
        rest = after;
    }
    Ok(())
}

/// Whether the text may be in a path without encoding.
pub(super) fn is_path(text: &str) -> bool {
    !text.contains(['?', '#']) && is_target(text)
}

/// Whether the text may be in a request's target without encoding.
pub(super) fn is_target(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn captures_are_segments_or_parts_of_them() {
        assert_eq!(captures("/"), Ok(vec![]));
        assert_eq!(captures("/a/{b}/c/{*rest}"), Ok(vec!["b", "rest"]));
        assert_eq!(captures("/v{n:[0-9]{1,2}}/{name}.{kind}"), Ok(vec!["n", "name", "kind"]));
        for wrong in [
            "",
            "a",
            "/{",
            "/}",
            "/a{b",
            "/{}",
            "/{*}",
            "/{*a}/b",
            "/{a}/{a}",
            "/a?b",
            "/a b",
            "/{a-b}",
            "/{a}{b}",
            "/x{*a}",
            "/{*a:x}",
            "/{a:(}",
            "/{a:[}",
            "/{a:x)(y}",
        ] {
            assert!(captures(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_expression_matches_the_whole_segment() {
        let all = segments("/v{n:[0-9]+|x}.js").unwrap();
        let [PathSegment::Pattern(pattern)] = all.as_slice() else { panic!("{all:?}") };
        for (text, is) in [("v1.js", true), ("vx.js", true), ("v1xjs", false), ("v1.jsx", false), ("v.js", false)] {
            assert_eq!(pattern.expression.is_match(text), is, "{text}");
        }
        assert_eq!(pattern.fixed_bytes, 4);
    }

    #[test]
    fn fixed_text_beside_captures_is_in_normal_form() {
        for (path, is) in [("/a/{b}.js", true), ("/%7e{b}", false), ("/{a}//b", false), ("/{a:[0-9]+}/{*r}", true)] {
            assert_eq!(is_normal(path, PathRule::default()), is, "{path}");
        }
    }

    #[test]
    fn templates_use_what_the_path_has() {
        assert_eq!(check_template("/v2/{rest}?a={rest}", &["rest"]), Ok(()));
        for wrong in ["{", "}", "{rest", "rest}", "{other}", "{}", "{*rest}", "{{rest}}"] {
            assert!(check_template(wrong, &["rest"]).is_err(), "{wrong}");
        }
    }
}

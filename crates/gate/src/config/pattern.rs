//! Paths with captures, `/api/{name}/{*rest}`, and templates that use them.

use weir_http::path::{PathRule, normalize};

/// The captures of a route's path.
///
/// # Errors
/// The error and its remedy.
pub(crate) fn captures(path: &str) -> Result<Vec<&str>, (String, String)> {
    const PATH_FORM: &str = r#"write it as "/fixed/{one}/{*rest}""#;
    let wrong = |what: &str| Err((what.to_owned(), PATH_FORM.to_owned()));
    let Some(inner) = path.strip_prefix('/') else { return wrong("a path begins with \"/\"") };
    let mut names: Vec<&str> = Vec::new();
    let mut segments = inner.split('/').peekable();
    while let Some(segment) = segments.next() {
        let capture = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(capture) = capture else {
            if segment.contains(['{', '}']) {
                return wrong(&format!("invalid segment {segment:?}: a capture is a whole segment"));
            }
            if !is_path(segment) {
                return wrong(&format!("invalid segment {segment:?}"));
            }
            continue;
        };
        let name = capture.strip_prefix('*');
        if name.is_some() && segments.peek().is_some() {
            return wrong(&format!("{segment:?} captures the rest of the path, and must be last"));
        }
        let name = name.unwrap_or(capture);
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return wrong(&format!("invalid capture {segment:?}: a name has letters, digits and \"_\""));
        }
        if names.contains(&name) {
            return wrong(&format!("duplicate {segment:?}"));
        }
        names.push(name);
    }
    Ok(names)
}

/// Whether the path, its captures aside, is in normal form, so that requests can have it.
pub(super) fn is_normal(path: &str, rule: PathRule) -> bool {
    let plain = |segment: &str| if segment.starts_with('{') { "x".to_owned() } else { segment.to_owned() };
    let plain = path.split('/').map(plain).collect::<Vec<_>>().join("/");
    normalize(&plain, rule).is_ok_and(|normal| normal == plain)
}

/// The path without the names of its captures: paths of the same shape match the same requests.
pub(super) fn shape(path: &str) -> String {
    let segment = |segment: &str| match segment.as_bytes() {
        [b'{', b'*', ..] => "{*}".to_owned(),
        [b'{', ..] => "{}".to_owned(),
        _ => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Validates a path or query that uses captures.
///
/// # Errors
/// The error and its remedy.
pub(super) fn check_template(text: &str, captures: &[&str]) -> Result<(), (String, String)> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let open = rest[at..].strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let Some((name, after)) = open else {
            return Err(("has an unmatched brace".into(), "write captures as {name}".into()));
        };
        if !captures.contains(&name) {
            let known: Vec<String> = captures.iter().map(|name| format!("{{{name}}}")).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err((format!("uses {{{name}}}, which the route's path does not have"), known));
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
    use super::*;

    #[test]
    fn captures_are_whole_segments() {
        assert_eq!(captures("/"), Ok(vec![]));
        assert_eq!(captures("/a/{b}/c/{*rest}"), Ok(vec!["b", "rest"]));
        for wrong in ["", "a", "/{", "/a{b}", "/{b}c", "/{}", "/{*}", "/{*a}/b", "/{a}/{a}", "/a?b", "/a b", "/{a-b}"] {
            assert!(captures(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_with_other_capture_names_have_the_same_shape() {
        assert_eq!(shape("/a/{b}/{*c}"), shape("/a/{d}/{*e}"));
        assert_ne!(shape("/a/{b}"), shape("/a/{*b}"));
    }

    #[test]
    fn templates_use_what_the_path_has() {
        assert_eq!(check_template("/v2/{rest}?a={rest}", &["rest"]), Ok(()));
        for wrong in ["{", "}", "{rest", "rest}", "{other}", "{}", "{*rest}", "{{rest}}"] {
            assert!(check_template(wrong, &["rest"]).is_err(), "{wrong}");
        }
    }
}

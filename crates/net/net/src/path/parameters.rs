//! Parameters of path segments (`/a;v=1/b`, RFC 3986, 3.3), which some services remove before they compare a path, and
//! others take as text.

/// A path in normal form as services read it that remove parameters: Tomcat, Jetty, Spring. None if it has none.
pub fn without_parameters(path: &str) -> Option<String> {
    let first = parameters_start(path)?;
    let mut plain = String::with_capacity(path.len());
    // What is before the segment with the first of them stays.
    let start = path[..first].rfind('/').map_or(0, |slash| slash + 1);
    plain.push_str(&path[..start]);
    for (index, segment) in path[start..].split('/').enumerate() {
        if index > 0 {
            plain.push('/');
        }
        plain.push_str(segment_name(segment));
    }
    Some(plain)
}

/// A segment without its parameters.
pub fn segment_name(segment: &str) -> &str {
    &segment[..parameters_start(segment).unwrap_or(segment.len())]
}

/// Position of the first semicolon. An escaped one counts, since some services decode before they look for it.
fn parameters_start(path: &str) -> Option<usize> {
    path.bytes().zip(0..).find_map(|(byte, at)| match byte {
        b';' => Some(at),
        b'%' if path[at..].starts_with("%3B") => Some(at),
        _ => None,
    })
}

/// `..;a`, `.;`, and the same with an escaped semicolon: a dot segment once its parameters are removed.
pub(super) fn is_dots_with_parameters(segment: &[u8]) -> bool {
    let after = segment.strip_prefix(b"..").or_else(|| segment.strip_prefix(b"."));
    after.is_some_and(is_parameters_alone)
}

/// `;a`, and the same with an escaped semicolon: an empty segment once its parameters are removed.
pub(super) fn is_parameters_alone(segment: &[u8]) -> bool {
    segment.starts_with(b";") || segment.starts_with(b"%3B")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameters_end_with_their_segment() {
        for (path, expected) in [
            ("/a/b", None),
            ("/admin;x", Some("/admin")),
            ("/a/admin;x;y=1/b", Some("/a/admin/b")),
            ("/a%3Bx/b;y", Some("/a/b")),
            ("/a;x/", Some("/a/")),
            ("/;x/a", Some("//a")),
            ("/a;%3B/b%3Cc", Some("/a/b%3Cc")),
            ("*", None),
        ] {
            assert_eq!(without_parameters(path).as_deref(), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn each_segment_is_cut_by_itself(path in "(/(a|b;|;|%3B|%3C|x=1){0,4}){1,5}") {
            let naive: Vec<&str> = path.split('/').map(|segment| segment.split([';']).next().unwrap_or_default())
                .map(|segment| segment.split("%3B").next().unwrap_or_default()).collect();
            let naive = naive.join("/");
            prop_assert_eq!(without_parameters(&path).unwrap_or_else(|| path.clone()), naive);
        }
    }
}

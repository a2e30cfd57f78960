//! Parts of a URL as it is written, for texts that keep their spelling.

/// Parts of a URL as it is written, of any scheme and not checked. `://` ends a scheme only before the first `/`, `?` or
/// `#`: behind it is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlText<'t> {
    /// Scheme, if there is one.
    pub scheme: Option<&'t str>,
    /// User, password, host and port.
    pub authority: &'t str,
    /// Path, query and fragment.
    pub after_authority: &'t str,
    /// Scheme and authority.
    pub origin: &'t str,
}

impl<'t> UrlText<'t> {
    /// Parts of a text.
    pub fn of(text: &'t str) -> Self {
        let end_in = |from: usize| {
            let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
            text.as_bytes()[from..].iter().position(is_end).map_or(text.len(), |at| from + at)
        };
        let first = end_in(0);
        let is_scheme = text[first..].starts_with("//") && text[..first].ends_with(':');
        let (scheme, start) = if is_scheme { (Some(&text[..first - 1]), first + 2) } else { (None, 0) };
        let end = if is_scheme { end_in(start) } else { first };
        Self { scheme, authority: &text[start..end], after_authority: &text[end..], origin: &text[..end] }
    }

    /// Whether a text that may be the name of a file is a URL: it has a scheme, or a host with a port.
    pub fn is_url(&self) -> bool {
        let port = self.host().rsplit_once(':').map(|(_, port)| port);
        self.scheme.is_some() || port.is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
    }

    /// Host and port.
    pub fn host(&self) -> &'t str {
        self.authority.rsplit_once('@').map_or(self.authority, |(_, host)| host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_scheme_ends_before_the_path() {
        for (text, scheme, authority, rest) in [
            ("http://u:p@h:1/a?b#c", Some("http"), "u:p@h:1", "/a?b#c"),
            ("h:1/to?url=http://x", None, "h:1", "/to?url=http://x"),
            ("h?http://x", None, "h", "?http://x"),
            ("/a", None, "", "/a"),
            ("//h/a", None, "", "//h/a"),
            ("unix:/a", None, "unix:", "/a"),
            ("http://", Some("http"), "", ""),
            ("é://é/", Some("é"), "é", "/"),
        ] {
            let parts = UrlText::of(text);
            assert_eq!((parts.scheme, parts.authority, parts.after_authority), (scheme, authority, rest), "{text}");
        }
    }

    #[test]
    fn a_file_is_no_url() {
        for (text, is_url) in [
            ("127.0.0.1:8080/x.toml", true),
            ("localhost:1", true),
            ("http://h/x.toml", true),
            ("me:pw@h:1/x.hurl", true),
            ("x.toml", false),
            ("dir/x.toml", false),
            ("a:b/x.toml", false),
            ("C:/x.hurl", false),
            ("", false),
        ] {
            assert_eq!(UrlText::of(text).is_url(), is_url, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_parts_are_the_text(text in "[a:/?#@é]{0,12}") {
            let parts = UrlText::of(&text);
            let scheme = parts.scheme.map_or(String::new(), |scheme| format!("{scheme}://"));
            prop_assert_eq!(format!("{scheme}{}{}", parts.authority, parts.after_authority), text.clone());
            prop_assert_eq!(format!("{}{}", parts.origin, parts.after_authority), text.clone());
            prop_assert!(parts.authority.ends_with(parts.host()));
        }
    }
}

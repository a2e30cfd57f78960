//! Components of a URL or of a relative reference.

use super::UrlScheme;
use super::error::{UrlProblem, printable};

/// Components of a reference (RFC 3986, appendix B), without the fragment.
#[derive(Debug)]
pub(super) struct UrlReference<'t> {
    scheme: Option<&'t [u8]>,
    /// Bytes after `//`, up to the path.
    pub(super) authority: Option<&'t [u8]>,
    pub(super) path: &'t [u8],
    /// Bytes after `?`, up to the fragment.
    pub(super) query: Option<&'t [u8]>,
}

impl<'t> UrlReference<'t> {
    /// Splits a text.
    ///
    /// # Errors
    /// If browsers would find another host in it: they leave out tabs and line breaks, and take a backslash for a slash.
    pub(super) fn split(text: &'t [u8]) -> Result<Self, UrlProblem> {
        let control = text.iter().find(|byte| byte.is_ascii_control());
        let (text, _) = split_before(text, b"#");
        let (before, after) = split_before(text, b":/?");
        let (scheme, text) = match after.strip_prefix(b":") {
            Some(rest) if is_scheme(before) => (Some(before), rest),
            _ => (None, text),
        };
        if let [b'/' | b'\\', b'/' | b'\\', ..] = text
            && !text.starts_with(b"//")
        {
            return Err(UrlProblem::HostCharacter('\\'));
        }
        let (authority, text) = match text.strip_prefix(b"//") {
            Some(rest) => {
                let (authority, rest) = split_before(rest, b"/?");
                (Some(authority), rest)
            }
            None => (None, text),
        };
        if let (None, Some(control)) = (authority, control) {
            return Err(UrlProblem::ControlCharacter(char::from(*control)));
        }
        let (path, query) = split_before(text, b"?");
        Ok(Self { scheme, authority, path, query: query.strip_prefix(b"?") })
    }

    /// Scheme, if the reference names one.
    pub(super) fn scheme(&self) -> Result<Option<UrlScheme>, UrlProblem> {
        let Some(name) = self.scheme else { return Ok(None) };
        match UrlScheme::named(name) {
            Some(scheme) => Ok(Some(scheme)),
            // `localhost:8080` is a host, though the grammar has it as scheme and path.
            None if self.authority.is_none() && self.path.first().is_some_and(u8::is_ascii_digit) => {
                Err(UrlProblem::NoScheme)
            }
            None => Err(UrlProblem::UnknownScheme(printable(name))),
        }
    }
}

fn is_scheme(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
}

/// Text before the first of some characters, and the rest, beginning with it.
fn split_before<'t>(text: &'t [u8], ends: &[u8]) -> (&'t [u8], &'t [u8]) {
    text.split_at(text.iter().position(|b| ends.contains(b)).unwrap_or(text.len()))
}

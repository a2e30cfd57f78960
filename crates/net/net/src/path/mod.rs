//! Normalized paths: two spellings that a service takes for the same path become the same text (RFC 3986, 6.2.2).
//!
//! A decision by path is valid only if the next reader takes the path for the same one. So the path is normalized
//! first, and that form is compared and passed on: escapes of letters, digits and `-._~` are decoded, other escapes
//! have capital digits, characters that need it are escaped, `//` is one slash, and dot segments are removed. A path
//! that services still read in different ways is an [`AmbiguousPath`].
//!
//! - `parameters`: `;v=1` in a segment, which some services remove; `joined`: paths made of a template and captures

mod joined;
mod parameters;

use std::borrow::Cow;
use std::fmt;

pub use self::joined::{is_normal_template, normalize_joined};
use self::parameters::{is_dots_with_parameters, is_parameters_alone};
pub use self::parameters::{segment_name, without_parameters};

/// Options of normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Whether `//` is `/`.
    pub merge_slashes: bool,
    /// Whether an ambiguous path is accepted as it is.
    pub pass_ambiguous: bool,
    /// Whether parameters are text like any other, so that a path with them is not compared without them.
    pub pass_parameters: bool,
}

impl PathRule {
    /// Whether paths are accepted that are others once their parameters are removed.
    pub fn passes_parameters(self) -> bool {
        self.pass_parameters || self.pass_ambiguous
    }
}

impl Default for PathRule {
    /// Paths as most services read them; ambiguous ones are rejected.
    fn default() -> Self {
        Self { merge_slashes: true, pass_ambiguous: false, pass_parameters: false }
    }
}

/// Reason why a path is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmbiguousPath {
    /// `%2F`, `%5C` or `\`: the end of a segment for some services.
    Separator,
    /// `%00`: the end of the path for some services.
    Nul,
    /// A `%` without two hexadecimal digits.
    Escape,
    /// `..;`: some services remove parameters before dot segments, some do not.
    DotParameters,
    /// `/;a/`: a segment of parameters alone, which is empty for some services.
    Parameters,
    /// `..` or `.`, put together from parts that were compared as something else.
    DotSegment,
    /// `/admin;a`: another route's path once its parameters are removed.
    OtherRoute,
}

impl fmt::Display for AmbiguousPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Separator => "an escaped slash, or a backslash",
            Self::Nul => "an escaped NUL",
            Self::Escape => "a % without two digits",
            Self::DotParameters => "a dot segment with parameters",
            Self::Parameters => "a segment of parameters alone",
            Self::DotSegment => "a dot segment after the rewrite",
            Self::OtherRoute => "another route's path without its parameters",
        })
    }
}

/// The normal form of a path that begins with `/`. Anything else (`*`, an empty text) stays as it is.
///
/// # Errors
/// The ambiguity, unless the rule accepts it.
pub fn normalize(path: &str, rule: PathRule) -> Result<Cow<'_, str>, AmbiguousPath> {
    if !path.starts_with('/') || is_plain(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = normalize_escapes(path.as_bytes(), rule)?;
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_open = false;
    for segment in decoded.split(|byte| *byte == b'/').skip(1) {
        ends_open = false;
        match segment {
            b"" | b"." if rule.merge_slashes || !segment.is_empty() => ends_open = true,
            b".." => {
                segments.pop();
                ends_open = true;
            }
            _ if !rule.pass_ambiguous && is_dots_with_parameters(segment) => return Err(AmbiguousPath::DotParameters),
            _ if !rule.passes_parameters() && is_parameters_alone(segment) => return Err(AmbiguousPath::Parameters),
            _ => segments.push(segment),
        }
    }
    if ends_open || segments.is_empty() {
        segments.push(b"");
    }
    let mut normal = String::with_capacity(decoded.len());
    for segment in segments {
        normal.push('/');
        // The rest is ASCII.
        normal.extend(segment.iter().map(|byte| char::from(*byte)));
    }
    Ok(Cow::Owned(normal))
}

/// Whether a path is in normal form by every rule and unambiguous; the fast path.
fn is_plain(path: &[u8]) -> bool {
    let fine = |pair: &[u8]| pair[0] != b'/' || !matches!(pair[1], b'/' | b'.' | b';');
    path.iter().all(|byte| *byte == b'/' || is_plain_byte(*byte)) && path.windows(2).all(fine)
}

/// Characters allowed unescaped in a segment: RFC 3986's `pchar`.
fn is_plain_byte(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@".contains(&byte)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// The path with each byte in its normal spelling.
fn normalize_escapes(path: &[u8], rule: PathRule) -> Result<Vec<u8>, AmbiguousPath> {
    let doubt = |doubt| if rule.pass_ambiguous { Ok(()) } else { Err(doubt) };
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let value = match *byte {
            b'%' => match decode_hex_byte(after) {
                Some(value) => {
                    rest = &after[2..];
                    value
                }
                None => {
                    doubt(AmbiguousPath::Escape)?;
                    // Unescaped it would form an escape with the following digits.
                    out.extend(b"%25");
                    continue;
                }
            },
            b'\\' => {
                doubt(AmbiguousPath::Separator)?;
                out.push(b'\\');
                continue;
            }
            b'/' => {
                out.push(b'/');
                continue;
            }
            plain if is_plain_byte(plain) => {
                out.push(plain);
                continue;
            }
            other => other,
        };
        match value {
            b'/' | b'\\' => doubt(AmbiguousPath::Separator)?,
            0 => doubt(AmbiguousPath::Nul)?,
            _ => {}
        }
        if is_unreserved(value) {
            out.push(value);
        } else {
            const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.extend([b'%', HEX_DIGITS[usize::from(value >> 4)], HEX_DIGITS[usize::from(value & 15)]]);
        }
    }
    Ok(out)
}

/// The byte of two hexadecimal digits.
fn decode_hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    fn by_default(path: &str) -> Result<String, AmbiguousPath> {
        normalize(path, PathRule::default()).map(Cow::into_owned)
    }

    #[test]
    fn spellings_of_one_path_are_one_path() {
        for (path, expected) in [
            ("/login", "/login"),
            ("/%6cogin", "/login"),
            ("/%6C%6f%67in", "/login"),
            ("//login", "/login"),
            ("///login", "/login"),
            ("/x/../login", "/login"),
            ("/./login", "/login"),
            ("/%2e/login", "/login"),
            ("/x/%2E%2e/login", "/login"),
            ("/x//../login", "/login"),
            ("/../../login", "/login"),
            ("/a/b/c/./../../g", "/a/g"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/", "/"),
            ("//", "/"),
            ("/a/", "/a/"),
            ("/...", "/..."),
            ("/.a", "/.a"),
            ("/a%3ab%3Fc", "/a%3Ab%3Fc"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a{b}|c", "/a%7Bb%7D%7Cc"),
            ("/a;b=1", "/a;b=1"),
            ("/%252f", "/%252f"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(by_default(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn an_ambiguous_path_is_an_error_unless_accepted() {
        let pass = PathRule { pass_ambiguous: true, ..PathRule::default() };
        for (path, doubt, passed) in [
            ("/a%2fb", AmbiguousPath::Separator, "/a%2Fb"),
            ("/a%5cb", AmbiguousPath::Separator, "/a%5Cb"),
            ("/a\\b", AmbiguousPath::Separator, "/a\\b"),
            ("/a%00", AmbiguousPath::Nul, "/a%00"),
            ("/a%", AmbiguousPath::Escape, "/a%25"),
            ("/a%4", AmbiguousPath::Escape, "/a%254"),
            ("/a%zz", AmbiguousPath::Escape, "/a%25zz"),
            ("/x/..;/login", AmbiguousPath::DotParameters, "/x/..;/login"),
            ("/x/.;a/login", AmbiguousPath::DotParameters, "/x/.;a/login"),
            ("/x/%2e.%3b/login", AmbiguousPath::DotParameters, "/x/..%3B/login"),
            ("/;/admin", AmbiguousPath::Parameters, "/;/admin"),
            ("/a/%3bx", AmbiguousPath::Parameters, "/a/%3Bx"),
        ] {
            assert_eq!(by_default(path), Err(doubt), "{path}");
            assert_eq!(normalize(path, pass).unwrap(), passed, "{path}");
        }
    }

    #[test]
    fn slashes_stay_without_merging() {
        let rule = PathRule { merge_slashes: false, ..PathRule::default() };
        for (path, expected) in
            [("//a//b//", "//a//b//"), ("/a//../b", "/a/b"), ("//", "//"), ("/a/./b", "/a/b"), ("/a//.", "/a//")]
        {
            assert_eq!(normalize(path, rule).unwrap(), expected, "{path}");
        }
    }

    /// RFC 3986, 5.2.4, word by word.
    fn without_dots(path: &str) -> String {
        let (mut input, mut output) = (path.to_owned(), String::new());
        while !input.is_empty() {
            let drop_last = |output: &mut String| output.truncate(output.rfind('/').unwrap_or(0));
            if let Some(rest) = input.strip_prefix("../").or_else(|| input.strip_prefix("./")) {
                input = rest.to_owned();
            } else if let Some(rest) = input.strip_prefix("/./") {
                input = format!("/{rest}");
            } else if input == "/." {
                input = "/".to_owned();
            } else if let Some(rest) = input.strip_prefix("/../") {
                input = format!("/{rest}");
                drop_last(&mut output);
            } else if input == "/.." {
                input = "/".to_owned();
                drop_last(&mut output);
            } else if input == "." || input == ".." {
                input.clear();
            } else {
                let end = input[1..].find('/').map_or(input.len(), |at| at + 1);
                output.push_str(&input[..end]);
                input = input[end..].to_owned();
            }
        }
        output
    }

    /// Step by step, each over the whole text.
    fn naive(path: &str, rule: PathRule) -> String {
        let mut text = path.to_owned();
        for byte in 0..=255_u8 {
            let upper = format!("%{byte:02X}");
            text = text.replace(&format!("%{byte:02x}"), &upper);
            let mixed: Vec<char> = upper.chars().collect();
            text = text.replace(&format!("%{}{}", mixed[1].to_ascii_lowercase(), mixed[2]), &upper);
            text = text.replace(&format!("%{}{}", mixed[1], mixed[2].to_ascii_lowercase()), &upper);
        }
        for byte in (0..128_u8).filter(|byte| is_unreserved(*byte)) {
            text = text.replace(&format!("%{byte:02X}"), &char::from(byte).to_string());
        }
        while rule.merge_slashes && text.contains("//") {
            text = text.replace("//", "/");
        }
        without_dots(&text)
    }

    proptest! {
        #[test]
        fn the_normal_form_is_that_of_the_steps_one_by_one(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("/".to_owned()), Just(".".to_owned()), Just("..".to_owned()), Just("%2e".to_owned()),
                    Just("%3a".to_owned()), Just("%41".to_owned()), Just("%C3%a9".to_owned()), "[a-z;:@=~]{0,3}",
                ],
                0..12,
            ),
            merge_slashes: bool,
        ) {
            let path = format!("/{}", parts.concat());
            let rule = PathRule { merge_slashes, pass_ambiguous: true, ..PathRule::default() };
            prop_assert_eq!(normalize(&path, rule).unwrap(), naive(&path, rule), "{}", path);
        }

        #[test]
        fn a_normal_form_is_its_own_and_has_no_dots(path in "/[ -~\u{e9}]{0,40}", merge_slashes: bool, pass_ambiguous: bool) {
            let rule = PathRule { merge_slashes, pass_ambiguous, ..PathRule::default() };
            if let Ok(once) = normalize(&path, rule) {
                let again = normalize(&once, rule).map(Cow::into_owned);
                prop_assert_eq!(again.as_deref(), Ok(&*once));
                prop_assert!(once.starts_with('/') && !once.split('/').any(|segment| segment == "." || segment == ".."));
                prop_assert!(!merge_slashes || !once.contains("//"));
            }
        }
    }
}

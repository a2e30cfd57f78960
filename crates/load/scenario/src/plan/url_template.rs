//! URLs of requests: text and expressions, whose values do not move the host that the file gives.
//!
//! A value that a service or a row of data gives may end a URL after its host, so it could otherwise continue the host,
//! or make a password of it, and the credentials of a step would go elsewhere.

use weir_hurl::{Template, TemplatePart, TextPosition};

use super::encoding::PieceEncoding;
use super::piece::{PieceCompiler, PieceList};
use super::place;
use super::render_error::RenderError;
use super::request_template::RenderSource;

/// URL of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct UrlTemplate {
    parts: Vec<UrlPart>,
}

#[derive(Clone, Debug)]
struct UrlPart {
    pieces: PieceList,
    /// Limit of an expression's value; None for any value.
    limit: Option<ValueLimit>,
}

/// Limit of a value before the end of scheme, host and port.
#[derive(Clone, Debug)]
struct ValueLimit {
    place: AuthorityPlace,
    /// Whether only an expression is before it, which may have given the scheme alone.
    is_second: bool,
    /// Expression.
    name: String,
    position: TextPosition,
}

/// Place of an expression, by the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuthorityPlace {
    /// Scheme, or part of a host's name.
    Name,
    /// Port.
    Port,
    /// User or password.
    User,
    /// Part of a name that the text goes on with, or a path.
    NameOrPath,
    /// After a host.
    Path,
}

impl UrlTemplate {
    /// Compiles a URL in which variables that never change are text already.
    pub(super) fn compile(url: &Template, compiler: &mut PieceCompiler<'_>) -> Self {
        let mut encodings = place::in_url(url).into_iter();
        let mut compiled = Self::default();
        for (index, part) in url.parts.iter().enumerate() {
            let limit = AuthorityPlace::of(&url.parts, index);
            let (mut pieces, mut encoding) = (PieceList::default(), PieceEncoding::Url);
            let mut limited = None;
            let is_second = index == 1 && matches!(url.parts.first(), Some(TemplatePart::Expression(_)));
            if let TemplatePart::Expression(expression) = part {
                encoding = encodings.next().unwrap_or(encoding);
                let (name, position) = (expression.to_string(), expression.position);
                let name = name.trim_matches(['{', '}']).to_owned();
                limited = limit.map(|place| ValueLimit { place, is_second, name, position });
            }
            let one = Template { parts: vec![part.clone()], position: url.position };
            pieces.push_each(one, PieceEncoding::Url, vec![encoding], compiler);
            compiled.parts.push(UrlPart { pieces, limit: limited });
        }
        compiled
    }

    /// The bytes of a URL without expressions.
    pub(super) fn as_fixed(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [part] => part.pieces.as_fixed(),
            _ => None,
        }
    }

    /// Appends the URL to `out`, which is empty.
    pub(super) fn render(&self, source: &mut RenderSource<'_, '_>, out: &mut Vec<u8>) -> Result<(), RenderError> {
        for part in &self.parts {
            let start = out.len();
            part.pieces.render(source, out)?;
            if let Some(limit) = &part.limit {
                let (before, value) = out.split_at(start);
                limit.check(before, value)?;
            }
        }
        Ok(())
    }
}

impl ValueLimit {
    /// Checks a value, behind what is before it.
    fn check(&self, before: &[u8], value: &[u8]) -> Result<(), RenderError> {
        let scheme = before.windows(3).position(|part| part == b"://").map(|at| at + 3);
        let authority = scheme.map(|at| before.get(at..).unwrap_or_default());
        let is_valid = value.is_empty()
            || match authority {
                Some(authority) if authority.iter().any(|byte| ends_authority(*byte)) => true,
                Some([]) if self.is_second => true,
                None if !before.is_empty() || self.is_second => false,
                _ => self.place.allows(value),
            };
        if is_valid {
            return Ok(());
        }
        let (name, expected) = (self.name.clone(), self.place.expected());
        Err(RenderError::Host { name, expected, position: self.position })
    }
}

impl AuthorityPlace {
    /// Place of the part with this index; None if its value may be any: the first one, a whole host, or behind the host.
    fn of(parts: &[TemplatePart], index: usize) -> Option<Self> {
        let text = |part: Option<&TemplatePart>| match part {
            Some(TemplatePart::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let after = text(parts.get(index + 1));
        let Some(previous) = index.checked_sub(1) else { return after.starts_with("://").then_some(Self::Name) };
        let before = text(parts.get(previous));
        let first = text(parts.first());
        let authority = first.split_once("://").map(|(_, authority)| authority);
        if authority.is_some_and(|authority| authority.bytes().any(ends_authority)) {
            return None;
        }
        let is_user = is_user(parts.get(index + 1..).unwrap_or_default());
        let continues = after.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        match before.chars().last() {
            _ if is_user && (before.ends_with("://") || before.ends_with(':')) => Some(Self::User),
            Some(_) if before.ends_with("://") => continues.then_some(Self::Name),
            Some(':') => Some(Self::Port),
            Some('.' | '-') => Some(Self::Name),
            _ if is_user => Some(Self::NameOrPath),
            Some(_) if continues || after.starts_with(':') => Some(Self::NameOrPath),
            _ => Some(Self::Path),
        }
    }

    fn allows(self, value: &[u8]) -> bool {
        let is_name = || value.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        let is_path = || value.first().is_none_or(|byte| ends_authority(*byte));
        match self {
            Self::Name => is_name(),
            Self::Port => value.iter().all(u8::is_ascii_digit),
            Self::User => !value.iter().any(|byte| ends_authority(*byte) || *byte == b'\\'),
            Self::NameOrPath => is_name() || is_path(),
            Self::Path => is_path(),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Name => "it must be letters, digits, '-' and '.'",
            Self::Port => "it must be digits",
            Self::User => "it must not have /, ? or #",
            Self::NameOrPath | Self::Path => "it must begin with /, ? or #",
        }
    }
}

/// Whether a user or password ends in text before the host's end.
fn is_user(parts: &[TemplatePart]) -> bool {
    for part in parts {
        if let TemplatePart::Text(text) = part
            && let Some(end) = text.bytes().find(|byte| ends_authority(*byte) || *byte == b'@')
        {
            return end == b'@';
        }
    }
    false
}

fn ends_authority(byte: u8) -> bool {
    matches!(byte, b'/' | b'?' | b'#')
}

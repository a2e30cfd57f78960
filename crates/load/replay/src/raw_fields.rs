//! From the texts of fields to a record.

use std::borrow::Cow;

use super::access_record::AccessRecord;
use super::line_error::LineError;
use super::line_field::FieldTexts;
use super::request_text::{is_method, request_line, target, unescaped};

/// Whether the texts of fields have the escapes of nginx and Apache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextEscapes {
    /// `\x22` and `\"` are undone.
    Undone,
    /// Texts are as they were.
    None,
}

impl TextEscapes {
    fn undo(self, text: &str) -> Cow<'_, [u8]> {
        match self {
            Self::Undone => unescaped(text),
            Self::None => Cow::Borrowed(text.as_bytes()),
        }
    }
}

impl FieldTexts<'_> {
    /// Record of these fields.
    ///
    /// # Errors
    /// If there is no time, or no request.
    pub(crate) fn into_record(self, escapes: TextEscapes) -> Result<AccessRecord, LineError> {
        let time = self.time.ok_or(LineError::NoTime)?;
        let plain = |text| escapes.undo(text);
        let no_request = || LineError::NoRequest(self.request_line.or(self.target).unwrap_or_default().to_owned());
        let line = self.request_line.map(plain);
        let of_line = line.as_deref().and_then(request_line);
        let method = self.method.or(of_line.map(|(method, _)| method)).ok_or_else(no_request)?;
        let whole = match (self.target.or(self.path).map(plain), of_line) {
            (Some(given), _) => given,
            (None, Some((_, given))) => Cow::Borrowed(given),
            (None, None) => return Err(no_request()),
        };
        if !is_method(method) || method == "CONNECT" {
            return Err(no_request());
        }
        let (mut path, host) = target(&whole).ok_or_else(no_request)?;
        let query = self.query.map(|query| query.strip_prefix('?').unwrap_or(query)).map(plain);
        if let Some(query) = query.filter(|query| !query.is_empty() && !path.contains('?')) {
            let (query, _) = target(&[b"/?", &*query].concat()).ok_or_else(no_request)?;
            path.push_str(&query[1..]);
        }
        let owned = |text: &str| String::from_utf8_lossy(&escapes.undo(text)).into_owned().into_boxed_str();
        // Headers are sent as they are, so that they have no control characters.
        let header = |text: Option<&str>| text.map(owned).filter(|text| !text.chars().any(char::is_control));
        Ok(AccessRecord {
            time,
            took: self.took,
            method: method.into(),
            target: path.into_boxed_str(),
            host: header(self.host.or(host)),
            status: self.status,
            user_agent: header(self.user_agent),
            referer: header(self.referer),
            body: self.body.map(owned),
        })
    }
}

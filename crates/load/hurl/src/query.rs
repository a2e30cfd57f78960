//! Queries: values of a response.

use std::fmt;

use crate::cookie_path::CookiePath;
use crate::error::Parsed;
use crate::pattern::RegexPattern;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::template::Template;

/// Value of a response, such as `jsonpath "$.id"`.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseQuery {
    /// Value.
    pub kind: QueryKind,
    /// Place of its name.
    pub position: TextPosition,
}

/// Value of a [`ResponseQuery`].
#[derive(Clone, Debug, PartialEq)]
pub enum QueryKind {
    /// Query without arguments.
    Plain(PlainQuery),
    /// Query with one string.
    Text(TextQuery, Template),
    /// `regex PATTERN`: first group of the first match in the body.
    Regex(RegexPattern),
    /// `cookie "NAME[ATTRIBUTE]"`: cookie that the response sets.
    Cookie(CookiePath),
    /// `certificate "ATTRIBUTE"`: certificate of the server.
    Certificate(CertificateAttribute),
}

crate::words::words! {
    /// Query without arguments.
    pub enum PlainQuery {
        /// Body as text.
        Body = "body",
        /// Body as bytes, after content decoding.
        Bytes = "bytes",
        /// Time from the request to the end of the response, in milliseconds.
        Duration = "duration",
        /// IP address of the server.
        Ip = "ip",
        /// MD5 of the body.
        Md5 = "md5",
        /// Body as bytes, before content decoding.
        RawBytes = "rawbytes",
        /// Responses that redirected to this one.
        Redirects = "redirects",
        /// SHA-256 of the body.
        Sha256 = "sha256",
        /// Status code.
        Status = "status",
        /// URL of the response, after redirects.
        Url = "url",
        /// Version of HTTP: 1.0, 1.1, 2 or 3.
        Version = "version",
    }
}

crate::words::words! {
    /// Query with one string.
    pub enum TextQuery {
        /// Value of a header, or a list of its values.
        Header = "header",
        /// Value in a JSON body, by a JSONPath.
        JsonPath = "jsonpath",
        /// Value of a variable.
        Variable = "variable",
        /// Value in an XML or HTML body, by an XPath.
        XPath = "xpath",
    }
}

crate::words::words! {
    /// Attribute that a certificate query reads: `certificate "Issuer"`.
    pub enum CertificateAttribute {
        /// End of its validity.
        ExpireDate = "Expire-Date",
        /// Issuer.
        Issuer = "Issuer",
        /// Serial number.
        SerialNumber = "Serial-Number",
        /// Start of its validity.
        StartDate = "Start-Date",
        /// Subject.
        Subject = "Subject",
        /// Subject's alternative names.
        SubjectAltName = "Subject-Alt-Name",
        /// The certificate, in PEM.
        Value = "Value",
    }
}

const CERTIFICATE: &str = "certificate";
const COOKIE: &str = "cookie";
const REGEX: &str = "regex";

/// Names of all queries.
fn spellings() -> impl Iterator<Item = &'static str> {
    PlainQuery::spellings().chain(TextQuery::spellings()).chain([CERTIFICATE, COOKIE, REGEX])
}

impl ResponseQuery {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let position = reader.position();
        let name = reader.take_word();
        let kind = if let Some(query) = PlainQuery::from_word(name) {
            QueryKind::Plain(query)
        } else if let Some(query) = TextQuery::from_word(name) {
            reader.need_spaces()?;
            QueryKind::Text(query, Template::read_quoted(reader)?)
        } else {
            match name {
                REGEX => {
                    reader.need_spaces()?;
                    QueryKind::Regex(RegexPattern::read(reader)?)
                }
                COOKIE => {
                    reader.need_spaces()?;
                    QueryKind::Cookie(CookiePath::read(reader)?)
                }
                CERTIFICATE => {
                    reader.need_spaces()?;
                    QueryKind::Certificate(CertificateAttribute::read(reader)?)
                }
                name => return Err(reader.expected_at(start, "a query").with_nearest(name, spellings())),
            }
        };
        Ok(Self { kind, position })
    }
}

impl CertificateAttribute {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        reader.need("\"")?;
        let start = reader.cursor();
        let name = reader.take_word();
        let Some(attribute) = Self::from_word(name) else {
            let expected = format!("one of {}", Self::spellings().collect::<Vec<_>>().join(", "));
            return Err(reader.expected_at(start, expected));
        };
        reader.need("\"")?;
        Ok(attribute)
    }
}

impl fmt::Display for ResponseQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            QueryKind::Plain(query) => query.fmt(f),
            QueryKind::Text(query, argument) => write!(f, "{query} {}", argument.quoted()),
            QueryKind::Regex(pattern) => write!(f, "{REGEX} {pattern}"),
            QueryKind::Cookie(path) => write!(f, "{COOKIE} \"{path}\""),
            QueryKind::Certificate(attribute) => write!(f, "{CERTIFICATE} \"{attribute}\""),
        }
    }
}

//! Filters: conversions of a value.

use std::fmt;

use crate::error::Parsed;
use crate::number;
use crate::pattern::RegexPattern;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::template::Template;
use crate::templated::Templated;

/// Conversion of a value into another, such as `toInt`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueFilter {
    /// Conversion.
    pub kind: FilterKind,
    /// Place of its name.
    pub position: TextPosition,
}

/// Conversion of a [`ValueFilter`].
#[derive(Clone, Debug, PartialEq)]
pub enum FilterKind {
    /// Filter without arguments.
    Plain(PlainFilter),
    /// Filter with one string.
    Text(TextFilter, Template),
    /// `nth INDEX`: item of a list; -1 is the last.
    Nth(Templated<i64>),
    /// `regex PATTERN`: first group of the first match.
    Regex(RegexPattern),
    /// `replace OLD NEW`: all occurrences.
    Replace {
        /// Text to replace.
        old: Template,
        /// Replacement.
        new: Template,
    },
    /// `replaceRegex PATTERN NEW`: all matches.
    ReplaceRegex {
        /// Pattern to replace.
        pattern: RegexPattern,
        /// Replacement; `$1` is the first group.
        new: Template,
    },
}

crate::words::words! {
    /// Filter without arguments.
    pub enum PlainFilter {
        /// Text to the bytes that it encodes.
        Base64Decode = "base64Decode",
        /// Bytes to Base64.
        Base64Encode = "base64Encode",
        /// As `base64Decode`, in the alphabet for URLs.
        Base64UrlSafeDecode = "base64UrlSafeDecode",
        /// As `base64Encode`, in the alphabet for URLs.
        Base64UrlSafeEncode = "base64UrlSafeEncode",
        /// Number of items or characters.
        Count = "count",
        /// Number of days until a date.
        DaysAfterNow = "daysAfterNow",
        /// Number of days since a date.
        DaysBeforeNow = "daysBeforeNow",
        /// First item of a list.
        First = "first",
        /// `&`, `<` and `>` to entities.
        HtmlEscape = "htmlEscape",
        /// Entities to characters.
        HtmlUnescape = "htmlUnescape",
        /// Last item of a list.
        Last = "last",
        /// Target of a redirect.
        Location = "location",
        /// Lines of JSON to a list of texts; not of hurl.
        JsonLines = "ndjson",
        /// Text to a floating-point number.
        ToFloat = "toFloat",
        /// Bytes to hexadecimal digits.
        ToHex = "toHex",
        /// Text to an integer.
        ToInt = "toInt",
        /// Server-sent events to the list of their data; not of hurl.
        Sse = "sse",
        /// Value to text.
        ToString = "toString",
        /// `%20` to a space.
        UrlDecode = "urlDecode",
        /// Space to `%20`.
        UrlEncode = "urlEncode",
        /// UTF-8 bytes to text.
        Utf8Decode = "utf8Decode",
        /// Text to UTF-8 bytes.
        Utf8Encode = "utf8Encode",
    }
}

crate::words::words! {
    /// Filter with one string.
    pub enum TextFilter {
        /// Bytes in a character encoding to text.
        CharsetDecode = "charsetDecode",
        /// Text to bytes in a character encoding.
        CharsetEncode = "charsetEncode",
        /// Date to text, by a format as that of strftime.
        DateFormat = "dateFormat",
        /// Value in a JSON text, by a JSONPath.
        JsonPath = "jsonpath",
        /// Parts between separators.
        Split = "split",
        /// Text to a date, by a format as that of strftime.
        ToDate = "toDate",
        /// Value of a parameter in a URL.
        UrlQueryParam = "urlQueryParam",
        /// Value in an XML or HTML text, by an XPath.
        XPath = "xpath",
    }
}

const NTH: &str = "nth";
const REGEX: &str = "regex";
const REPLACE: &str = "replace";
const REPLACE_REGEX: &str = "replaceRegex";

/// Spellings that hurl has deprecated; they are accepted, but not written.
const RENAMED_FILTERS: [(&str, TextFilter); 2] =
    [("decode", TextFilter::CharsetDecode), ("format", TextFilter::DateFormat)];

/// Names of all filters.
pub(crate) fn spellings() -> impl Iterator<Item = &'static str> {
    PlainFilter::spellings().chain(TextFilter::spellings()).chain([NTH, REGEX, REPLACE, REPLACE_REGEX])
}

fn text_filter(name: &str) -> Option<TextFilter> {
    let renamed = || RENAMED_FILTERS.iter().find(|(old, _)| *old == name).map(|(_, filter)| *filter);
    TextFilter::from_word(name).or_else(renamed)
}

impl ValueFilter {
    /// Reads filters, each after spaces, up to a word that is not a filter.
    pub(crate) fn read_all(reader: &mut Reader<'_>) -> Parsed<Vec<Self>> {
        let mut filters = Vec::new();
        loop {
            let start = reader.cursor();
            if !reader.skip_spaces() {
                return Ok(filters);
            }
            match Self::read(reader)? {
                Some(filter) => filters.push(filter),
                None => {
                    reader.seek(start);
                    return Ok(filters);
                }
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Parsed<Option<Self>> {
        let position = reader.position();
        let name = reader.take_word();
        let kind = if let Some(filter) = PlainFilter::from_word(name) {
            FilterKind::Plain(filter)
        } else if let Some(filter) = text_filter(name) {
            FilterKind::Text(filter, read_text_argument(reader)?)
        } else {
            match name {
                NTH => {
                    reader.need_spaces()?;
                    FilterKind::Nth(Templated::read(reader, number::read_integer)?)
                }
                REGEX => {
                    reader.need_spaces()?;
                    FilterKind::Regex(RegexPattern::read(reader)?)
                }
                REPLACE => FilterKind::Replace { old: read_text_argument(reader)?, new: read_text_argument(reader)? },
                REPLACE_REGEX => {
                    reader.need_spaces()?;
                    let pattern = RegexPattern::read(reader)?;
                    FilterKind::ReplaceRegex { pattern, new: read_text_argument(reader)? }
                }
                _ => return Ok(None),
            }
        };
        Ok(Some(Self { kind, position }))
    }
}

/// Reads spaces and a string in quotes.
fn read_text_argument(reader: &mut Reader<'_>) -> Parsed<Template> {
    reader.need_spaces()?;
    Template::read_quoted(reader)
}

impl fmt::Display for ValueFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FilterKind::Plain(filter) => filter.fmt(f),
            FilterKind::Text(filter, argument) => write!(f, "{filter} {}", argument.quoted()),
            FilterKind::Nth(index) => write!(f, "{NTH} {index}"),
            FilterKind::Regex(pattern) => write!(f, "{REGEX} {pattern}"),
            FilterKind::Replace { old, new } => write!(f, "{REPLACE} {} {}", old.quoted(), new.quoted()),
            FilterKind::ReplaceRegex { pattern, new } => write!(f, "{REPLACE_REGEX} {pattern} {}", new.quoted()),
        }
    }
}

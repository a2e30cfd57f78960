//! Cookies of a response, and their attributes.

use std::fmt;

use crate::error::Parsed;
use crate::reader::Reader;
use crate::template::Template;
use crate::template_style::TemplateStyle;

/// Cookie that a response sets, or an attribute of it: `name[Max-Age]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CookiePath {
    /// Name of the cookie.
    pub name: Template,
    /// Attribute; the value without one.
    pub attribute: Option<CookieAttribute>,
}

crate::words::words! {
    /// Attribute that a cookie query reads: `cookie "name[Path]"`.
    pub enum CookieAttribute {
        /// Host that gets the cookie.
        Domain = "Domain",
        /// Date until which the cookie is sent.
        Expires = "Expires",
        /// Whether scripts see the cookie.
        HttpOnly = "HttpOnly",
        /// Lifetime in seconds.
        MaxAge = "Max-Age",
        /// Prefix of the paths that get the cookie.
        Path = "Path",
        /// Whether requests from other sites send the cookie.
        SameSite = "SameSite",
        /// Whether the cookie is sent over TLS only.
        Secure = "Secure",
        /// Value of the cookie.
        Value = "Value",
    }
}

impl CookiePath {
    /// Reads `"name[attribute]"`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        if !reader.eat("\"") {
            return Err(reader.expected("a string in double quotes"));
        }
        let start = reader.cursor();
        let name = Template::read(reader, TemplateStyle::Cookie)?;
        if name.is_empty() {
            return Err(reader.expected_at(start, "the name of a cookie"));
        }
        reader.skip_spaces();
        let attribute = if reader.eat("[") { Some(CookieAttribute::read(reader)?) } else { None };
        reader.need("\"")?;
        Ok(Self { name, attribute })
    }
}

impl CookieAttribute {
    /// Reads `attribute]`, in any case.
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        reader.skip_spaces();
        let start = reader.cursor();
        let name = reader.take_word();
        let attribute = Self::ALL.iter().find(|attribute| attribute.as_str().eq_ignore_ascii_case(name));
        let Some(attribute) = attribute else {
            let expected = format!("one of {}", Self::spellings().collect::<Vec<_>>().join(", "));
            return Err(reader.expected_at(start, expected));
        };
        reader.skip_spaces();
        reader.need("]")?;
        Ok(*attribute)
    }
}

/// The path without quotes.
impl fmt::Display for CookiePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name.in_style(TemplateStyle::Cookie))?;
        self.attribute.map_or(Ok(()), |attribute| write!(f, "[{attribute}]"))
    }
}

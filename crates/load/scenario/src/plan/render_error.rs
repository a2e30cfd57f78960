//! Reasons why a request cannot be rendered.

use std::fmt;

use weir_hurl::{OptionName, TextPosition};
use weir_request::request_framing::FramingError;

use super::encoding::EncodingError;
use crate::evaluate::TemplateError;
use weir_request::url::UrlError;

/// Reason why a request cannot be rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum RenderError {
    /// Value that cannot be at its place.
    Encoding {
        /// Reason.
        error: EncodingError,
        /// Place of the expression.
        position: TextPosition,
    },
    /// Expression without a value.
    Template {
        /// Reason.
        error: TemplateError,
        /// Place of the expression.
        position: TextPosition,
    },
    /// Invalid value of an option.
    Option {
        /// Name of the option.
        name: OptionName,
        /// Value.
        value: String,
        /// Place of the expression.
        position: TextPosition,
    },
    /// Invalid URL.
    Url {
        /// Reason.
        error: UrlError,
        /// Place of the URL.
        position: TextPosition,
    },
    /// Value that would change the host of a URL.
    Host {
        /// Expression.
        name: String,
        /// Expected value, in words.
        expected: &'static str,
        /// Place of the expression.
        position: TextPosition,
    },
    /// Length that the body does not have.
    Framing {
        /// Reason.
        error: FramingError,
        /// Place of the header.
        position: TextPosition,
    },
    /// Body that cannot be sent in the form that the load has.
    Body(String),
    /// Too many different hosts.
    Origins,
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { error, position } => write!(f, "{position}: {error}"),
            Self::Template { error, position } => write!(f, "{position}: {error}"),
            Self::Option { name, value, position } => {
                write!(f, "{position}: invalid value '{}' of option {name}", value.escape_debug())
            }
            Self::Url { error, position } => write!(f, "{position}: {error}"),
            Self::Host { name, expected, position } => {
                write!(f, "{position}: the value of '{name}' would change the host; {expected}")
            }
            Self::Framing { error, position } => write!(f, "{position}: {error}"),
            Self::Body(why) => f.write_str(why),
            Self::Origins => f.write_str("too many different hosts"),
        }
    }
}

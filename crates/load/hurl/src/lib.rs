//! Parser and printer of `.hurl` files (<https://hurl.dev>), the text in which scenarios are written. PURE: no I/O and
//! no clock; a syntax tree comes out, which others compile and run.
//!
//! ```
//! let file = weir_hurl::parse("GET http://shop/items/{{id}}\nHTTP 200\n[Captures]\nname: jsonpath \"$.name\"\n");
//! let file = file.expect("valid");
//! assert_eq!(file.entries[0].request.method, "GET");
//! assert_eq!(file.to_string(), "GET http://shop/items/{{id}}\nHTTP 200\n[Captures]\nname: jsonpath \"$.name\"\n");
//! ```
//!
//! - [`parse`] reads all of a file, or finds all of its mistakes ([`ParseError`], shown by [`ErrorReport`])
//! - [`HurlFile`]: entries, each a [`HurlRequest`] and an [`ExpectedResponse`]; its display is a file again
//! - [`Template`]: text with [`Expression`]s; [`JsonText`]: JSON with them, as pieces to send
//! - [`RequestOption`], [`Capture`], [`Assertion`]: the lines of sections, of [`ResponseQuery`], [`ValueFilter`] and
//!   [`Predicate`]
//!
//! A node has its position where a run may fail because of it. A `read` of a type consumes text from the `Reader`; the
//! notations of templates and their escape sequences are `TemplateStyle`s; `parser` puts lines together and goes on
//! after errors. Reading takes linear time, and the depth of recursion is bounded: JSON and XML are scanned with stacks
//! of their own.
//!
//! The grammar is that of hurl 8.1, with the random functions after it and filters in expressions.

mod assertion;
mod block;
mod body;
mod bytes;
mod capture;
mod comment;
mod cookie_path;
mod entry;
mod error;
mod expression;
mod field;
mod filter;
mod json;
mod json_piece;
mod json_scanner;
mod line;
mod number;
mod option;
mod option_name;
mod option_value;
mod parser;
mod pattern;
mod position;
mod predicate;
mod query;
mod reader;
mod report;
mod request;
mod response;
mod scalar;
mod section;
mod template;
mod template_style;
mod templated;
mod value;
mod variable;
mod words;
mod xml;

#[cfg(test)]
mod tests;

pub use self::assertion::Assertion;
pub use self::block::{BlockContent, TextBlock};
pub use self::body::{BodyContent, HurlBody};
pub use self::bytes::BytesLiteral;
pub use self::capture::Capture;
pub use self::comment::Comment;
pub use self::cookie_path::{CookieAttribute, CookiePath};
pub use self::entry::{HurlEntry, HurlFile};
pub use self::error::ParseError;
pub use self::expression::{Expression, ExpressionSource, PlainFunction, TemplateFunction};
pub use self::field::{FieldTemplate, MultipartField, MultipartValue};
pub use self::filter::{FilterKind, PlainFilter, TextFilter, ValueFilter};
pub use self::json::JsonText;
pub use self::json_piece::JsonPiece;
pub use self::number::NumberLiteral;
pub use self::option::RequestOption;
pub use self::option_name::OptionName;
pub use self::option_value::{LogVerbosity, OptionCount, OptionDuration, OptionValue};
pub use self::parser::parse;
pub use self::pattern::{RegexLiteral, RegexPattern};
pub use self::position::TextPosition;
pub use self::predicate::{Predicate, PredicateKind, PredicateOperator, ValueTest};
pub use self::query::{CertificateAttribute, PlainQuery, QueryKind, ResponseQuery, TextQuery};
pub use self::report::ErrorReport;
pub use self::request::HurlRequest;
pub use self::response::{ExpectedResponse, ExpectedStatus, ExpectedVersion};
pub use self::scalar::ScalarValue;
pub use self::template::{Template, TemplatePart};
pub use self::templated::Templated;
pub use self::value::PredicateValue;
pub use self::variable::VariableDefinition;

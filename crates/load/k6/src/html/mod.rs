//! HTML of responses: documents, CSS selectors and what they find.
//!
//! - [`HtmlDocument`]: a parsed document; [`selector`]: what a selector is; [`matching`]: nodes that it selects

mod document;
mod matching;
mod selector;
mod selector_parser;

#[cfg(test)]
mod tests;

pub(crate) use self::document::{HtmlAxis, HtmlDocument};

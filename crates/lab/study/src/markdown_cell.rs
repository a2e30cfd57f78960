//! Text in a table or list of Markdown.

use weir_report::sanitize;

/// Text escaped for a table cell or a list item.
pub(super) fn cell(words: &str) -> String {
    sanitize(words).replace('|', "\\|").replace('<', "&lt;")
}

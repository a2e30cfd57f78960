//! Fields of forms.

use weir_hurl::FieldTemplate;

use crate::builder;
use crate::placeholder::braces;
use crate::request::field;
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Fields of a list of objects with `key` and `value`.
pub(super) fn fields(nodes: &[SourceNode<'_>], session: &mut ImportSession) -> Vec<FieldTemplate> {
    let mut made = Vec::new();
    for node in nodes.iter().filter(|node| !node.is_true("disabled")) {
        let name = braces(&node.text_of("key").unwrap_or_default(), node.line, session);
        let value = braces(&node.text_of("value").unwrap_or_default(), node.line, session);
        if !text::is_empty(&name) {
            made.push(field(builder::encoded_name(&name), value));
        }
    }
    made
}

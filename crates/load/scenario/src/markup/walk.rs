//! Nodes of a tree by their indices, for selectors.

use xpath_eval::{Node as _, NodeKind};

use super::{MarkupNode, MarkupRef, MarkupTree};

/// Kind of a node that has a place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkupKind {
    /// Root of all, index 0.
    Document,
    /// Element.
    Element,
    /// Text.
    Text,
    /// Comment.
    Comment,
    /// Attribute, or another node beside the tree.
    Other,
}

impl MarkupTree {
    /// Number of all nodes; their indices are below it, in the order of the text.
    pub fn count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Kind of a node.
    pub fn kind(&self, index: u32) -> MarkupKind {
        match self.get(index).map(|node| node.kind) {
            Some(NodeKind::Root) => MarkupKind::Document,
            Some(NodeKind::Element) => MarkupKind::Element,
            Some(NodeKind::Text) => MarkupKind::Text,
            Some(NodeKind::Comment) => MarkupKind::Comment,
            _ => MarkupKind::Other,
        }
    }

    /// Name of an element; empty for other nodes of the tree.
    pub fn name(&self, index: u32) -> &str {
        self.get(index).map_or("", |node| &node.name)
    }

    /// Content of a text or a comment.
    pub fn content(&self, index: u32) -> &str {
        self.get(index).map_or("", |node| &node.text)
    }

    /// Texts within a node, together.
    pub fn text_within(&self, index: u32) -> String {
        MarkupRef { tree: self, index }.string_value()
    }

    /// Parent of a node.
    pub fn parent(&self, index: u32) -> Option<u32> {
        self.get(index)?.parent
    }

    /// Children of a node: elements, texts and comments.
    pub fn children(&self, index: u32) -> &[u32] {
        self.get(index).map_or(&[], |node| &node.children)
    }

    /// Names and values of the attributes of an element, in their order.
    pub fn attributes(&self, index: u32) -> impl Iterator<Item = (&str, &str)> {
        let indices = self.get(index).map_or(&[][..], |node| &node.attributes);
        indices.iter().filter_map(|index| self.get(*index)).map(|MarkupNode { name, text, .. }| (&name[..], &text[..]))
    }

    /// Value of an attribute of an element.
    pub fn attribute(&self, index: u32, name: &str) -> Option<&str> {
        self.attributes(index).find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

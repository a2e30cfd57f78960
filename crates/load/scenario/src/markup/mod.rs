//! Trees of XML and HTML, for XPath.
//!
//! - [`MarkupTree`]: nodes in the order of the text
//! - [`MarkupKind`]: kinds of nodes, for those that walk by indices
//! - `xml`: well-formed XML; `html`: HTML as it is, with tags that are left out or never closed

mod html;
mod walk;
mod xml;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use xpath_eval::{ExpandedName, Node, NodeKind};

pub use self::walk::MarkupKind;

/// Most elements within each other. Deeper ones are siblings: evaluation is recursive.
const MAX_DEPTH: usize = 200;
/// Most nodes of a tree.
const MAX_NODES: usize = 1 << 20;

/// Tree of an XML or HTML document. Nodes have indices in the order of the text; the root is 0.
#[derive(Clone, Debug)]
pub struct MarkupTree {
    nodes: Vec<MarkupNode>,
    /// Nodes of namespaces, in the order of the text.
    namespaces: Vec<u32>,
}

#[derive(Clone, Debug)]
struct MarkupNode {
    kind: NodeKind,
    namespace: Option<String>,
    name: String,
    /// Content of texts, values of attributes.
    text: String,
    parent: Option<u32>,
    children: Vec<u32>,
    attributes: Vec<u32>,
}

/// Node of a tree.
#[derive(Clone, Copy)]
pub(crate) struct MarkupRef<'t> {
    tree: &'t MarkupTree,
    index: u32,
}

impl MarkupTree {
    /// Tree with a root alone.
    fn empty() -> Self {
        let root = MarkupNode::new(NodeKind::Root, "", "", None);
        Self { nodes: vec![root], namespaces: Vec::new() }
    }

    /// Root of the tree.
    pub(crate) fn root(&self) -> MarkupRef<'_> {
        MarkupRef { tree: self, index: 0 }
    }

    /// URI of a prefix; that of the first default namespace is `_`.
    pub(crate) fn namespace(&self, prefix: &str) -> Option<&str> {
        let wanted = if prefix == "_" { "" } else { prefix };
        let mut nodes = self.namespaces.iter().filter_map(|index| self.get(*index));
        nodes.find(|node| node.name == wanted).map(|node| node.text.as_str())
    }

    fn get(&self, index: u32) -> Option<&MarkupNode> {
        self.nodes.get(index as usize)
    }

    /// Appends a child; `None` if the tree is full.
    fn push_child(&mut self, parent: u32, kind: NodeKind, name: &str, text: &str) -> Option<u32> {
        let index = self.push(MarkupNode::new(kind, name, text, Some(parent)))?;
        self.nodes.get_mut(parent as usize)?.children.push(index);
        Some(index)
    }

    /// Appends an attribute.
    fn push_attribute(&mut self, parent: u32, name: &str, value: &str) -> Option<u32> {
        let index = self.push(MarkupNode::new(NodeKind::Attribute, name, value, Some(parent)))?;
        self.nodes.get_mut(parent as usize)?.attributes.push(index);
        Some(index)
    }

    /// Appends a namespace, unless it is known.
    fn push_namespace(&mut self, prefix: &str, uri: &str) {
        let mut known = self.namespaces.iter().filter_map(|index| self.get(*index));
        if !known.any(|node| node.name == prefix && node.text == uri) {
            let index = self.push(MarkupNode::new(NodeKind::Namespace, prefix, uri, Some(0)));
            self.namespaces.extend(index);
        }
    }

    fn push(&mut self, node: MarkupNode) -> Option<u32> {
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let index = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(index)
    }
}

impl MarkupNode {
    fn new(kind: NodeKind, name: &str, text: &str, parent: Option<u32>) -> Self {
        let (name, text) = (name.to_owned(), text.to_owned());
        Self { kind, namespace: None, name, text, parent, children: Vec::new(), attributes: Vec::new() }
    }
}

impl PartialEq for MarkupRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Eq for MarkupRef<'_> {}

impl std::fmt::Debug for MarkupRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {}", self.index)
    }
}

impl<'t> Node<'t> for MarkupRef<'t> {
    fn kind(self) -> NodeKind {
        self.tree.get(self.index).map_or(NodeKind::Text, |node| node.kind)
    }

    fn parent(self) -> Option<Self> {
        let index = self.tree.get(self.index)?.parent?;
        Some(Self { index, ..self })
    }

    fn children(self) -> impl Iterator<Item = Self> + 't {
        let children = self.tree.get(self.index).map_or(&[][..], |node| node.children.as_slice());
        children.iter().map(move |index| Self { index: *index, ..self })
    }

    fn attributes(self) -> impl Iterator<Item = Self> + 't {
        let attributes = self.tree.get(self.index).map_or(&[][..], |node| node.attributes.as_slice());
        attributes.iter().map(move |index| Self { index: *index, ..self })
    }

    /// Namespaces of the whole document, which names with a prefix refer to.
    fn namespaces(self) -> impl Iterator<Item = Self> + 't {
        let is_element = self.kind() == NodeKind::Element;
        let namespaces = if is_element { self.tree.namespaces.as_slice() } else { &[] };
        namespaces.iter().map(move |index| Self { index: *index, ..self })
    }

    fn expanded_name(self) -> Option<ExpandedName> {
        let node = self.tree.get(self.index)?;
        let is_named = !matches!(node.kind, NodeKind::Root | NodeKind::Text | NodeKind::Comment);
        is_named.then(|| ExpandedName { namespace_uri: node.namespace.clone(), local_name: node.name.clone() })
    }

    fn string_value(self) -> String {
        let Some(node) = self.tree.get(self.index) else { return String::new() };
        if !matches!(node.kind, NodeKind::Element | NodeKind::Root) {
            return node.text.clone();
        }
        let mut text = String::new();
        let mut waiting: Vec<u32> = node.children.iter().rev().copied().collect();
        while let Some(child) = waiting.pop().and_then(|index| self.tree.get(index)) {
            match child.kind {
                NodeKind::Text => text.push_str(&child.text),
                NodeKind::Element => waiting.extend(child.children.iter().rev()),
                _ => {}
            }
        }
        text
    }

    fn document_order(self, other: Self) -> Ordering {
        self.index.cmp(&other.index)
    }

    fn is_id_attribute(self) -> bool {
        self.tree.get(self.index).is_some_and(|node| node.name == "id" && node.kind == NodeKind::Attribute)
    }
}

//! A document, as scripts walk it: nodes are numbers in the order of the text; its root is 0.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use weir_scenario::markup::{MarkupKind, MarkupTree};

use super::matching::selected;
use super::selector_parser::parse_selector;

/// Selectors whose nodes are kept, so that a loop over elements evaluates its selector once.
const MAX_KEPT: usize = 8;
/// Elements without content.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"];
/// Elements whose text is no HTML.
const RAW: [&str; 2] = ["script", "style"];

/// Selectors, and for each node whether they select it.
type KeptSelections = Vec<(String, Rc<Vec<bool>>)>;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct HtmlDocument {
    tree: MarkupTree,
    kept: RefCell<KeptSelections>,
}

/// Direction of a walk from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HtmlAxis {
    /// Elements within it, its own children alone.
    Children,
    /// All nodes that are its own children.
    Contents,
    /// Its parent.
    Parent,
    /// Its ancestors that are elements, the nearest first.
    Ancestors,
    /// Elements after it, the nearest first.
    Next,
    /// Elements before it, the nearest first.
    Previous,
    /// Nodes after it, the nearest first.
    NextNodes,
    /// Nodes before it, the nearest first.
    PreviousNodes,
}

impl HtmlDocument {
    /// Document of a text; every text is one.
    pub(crate) fn parse(text: &str) -> Self {
        Self { tree: MarkupTree::of_html(text), kept: RefCell::default() }
    }

    /// Nodes.
    pub(crate) fn tree(&self) -> &MarkupTree {
        &self.tree
    }

    fn selection(&self, selector: &str) -> Result<Rc<Vec<bool>>, String> {
        let mut kept = self.kept.borrow_mut();
        if let Some((_, nodes)) = kept.iter().find(|(known, _)| known == selector) {
            return Ok(Rc::clone(nodes));
        }
        let nodes = Rc::new(selected(&self.tree, &parse_selector(selector)?));
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push((selector.to_owned(), Rc::clone(&nodes)));
        Ok(nodes)
    }

    /// Nodes within these that a selector selects, in the order of the text.
    ///
    /// # Errors
    /// One line with the mistake of the selector.
    pub(crate) fn find(&self, within: &[u32], selector: &str) -> Result<Vec<u32>, String> {
        let selection = self.selection(selector)?;
        let mut is_within = vec![false; selection.len()];
        for node in within {
            if let Some(is_one) = is_within.get_mut(*node as usize) {
                *is_one = true;
            }
        }
        let mut found = Vec::new();
        // Parents come before their children: what is within a child's parent is within.
        for node in 1..self.tree.count() {
            let is_child = self.tree.kind(node) != MarkupKind::Other
                && self.tree.parent(node).is_some_and(|parent| is_within[parent as usize]);
            if is_child {
                is_within[node as usize] = true;
                found.extend(selection[node as usize].then_some(node));
            }
        }
        Ok(found)
    }

    /// Those of these nodes that a selector selects.
    ///
    /// # Errors
    /// One line with the mistake of the selector.
    pub(crate) fn filter(&self, nodes: &[u32], selector: &str) -> Result<Vec<u32>, String> {
        let selection = self.selection(selector)?;
        let is_selected = |node: &u32| selection.get(*node as usize).copied().unwrap_or(false);
        Ok(nodes.iter().copied().filter(is_selected).collect())
    }

    /// Nodes in a direction from one.
    pub(crate) fn walk(&self, node: u32, axis: HtmlAxis) -> Vec<u32> {
        let is_element = |node: &u32| self.tree.kind(*node) == MarkupKind::Element;
        match axis {
            HtmlAxis::Contents => self.tree.children(node).to_vec(),
            HtmlAxis::Children => self.tree.children(node).iter().copied().filter(is_element).collect(),
            HtmlAxis::Parent => self.tree.parent(node).into_iter().collect(),
            HtmlAxis::Ancestors => std::iter::successors(self.tree.parent(node), |node| self.tree.parent(*node))
                .filter(is_element)
                .collect(),
            HtmlAxis::NextNodes => self.siblings(node).1,
            HtmlAxis::PreviousNodes => self.siblings(node).0,
            HtmlAxis::Next => self.siblings(node).1.into_iter().filter(is_element).collect(),
            HtmlAxis::Previous => self.siblings(node).0.into_iter().filter(is_element).collect(),
        }
    }

    /// Nodes before one and after it, the nearest first.
    fn siblings(&self, node: u32) -> (Vec<u32>, Vec<u32>) {
        let siblings = self.tree.parent(node).map_or(&[][..], |parent| self.tree.children(parent));
        let at = siblings.binary_search(&node).unwrap_or(0);
        let after = siblings.get(at + 1..).unwrap_or_default().to_vec();
        (siblings.get(..at).unwrap_or_default().iter().rev().copied().collect(), after)
    }

    /// HTML of a node, or of what is within it.
    pub(crate) fn html(&self, node: u32, is_inner: bool) -> String {
        let mut text = String::new();
        match is_inner {
            true => self.tree.children(node).iter().for_each(|child| self.write(*child, &mut text)),
            false => self.write(node, &mut text),
        }
        text
    }

    /// Writes a node as HTML. The depth of a tree is bounded.
    fn write(&self, node: u32, text: &mut String) {
        let tree = &self.tree;
        match tree.kind(node) {
            MarkupKind::Document => tree.children(node).iter().for_each(|child| self.write(*child, text)),
            MarkupKind::Text => {
                let is_raw = tree.parent(node).is_some_and(|parent| RAW.contains(&tree.name(parent)));
                match is_raw {
                    true => text.push_str(tree.content(node)),
                    false => push_escaped(text, tree.content(node), false),
                }
            }
            MarkupKind::Comment => {
                let _ = write!(text, "<!--{}-->", tree.content(node));
            }
            MarkupKind::Element => {
                let name = tree.name(node);
                let _ = write!(text, "<{name}");
                for (name, value) in tree.attributes(node) {
                    let _ = write!(text, " {name}=\"");
                    push_escaped(text, value, true);
                    text.push('"');
                }
                text.push('>');
                if !VOID.contains(&name) {
                    tree.children(node).iter().for_each(|child| self.write(*child, text));
                    let _ = write!(text, "</{name}>");
                }
            }
            MarkupKind::Other => {}
        }
    }
}

fn push_escaped(text: &mut String, part: &str, is_value: bool) {
    for sign in part.chars() {
        match sign {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' if is_value => text.push_str("&#34;"),
            _ => text.push(sign),
        }
    }
}

//! Well-formed XML to trees.

use roxmltree::{Document, NodeType, ParsingOptions};
use xpath_eval::NodeKind;

use crate::xml_bounds::check_xml;

use super::{MAX_DEPTH, MAX_NODES, MarkupTree};

impl MarkupTree {
    /// Tree of an XML document.
    ///
    /// # Errors
    /// Reason why the text is not one.
    pub fn of_xml(text: &str) -> Result<Self, String> {
        check_xml(text).map_err(|excess| excess.to_string())?;
        let nodes_limit = u32::try_from(MAX_NODES).unwrap_or(u32::MAX);
        let options = ParsingOptions { allow_dtd: true, nodes_limit, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| error.to_string())?;
        let mut tree = Self::empty();
        // Nodes of the XML that may have more children, and the tree's node of each.
        let mut open: Vec<(roxmltree::NodeId, u32)> = vec![(document.root().id(), 0)];
        for node in document.root().descendants().skip(1) {
            let parent = node.parent().map(|parent| parent.id());
            while open.len() > 1 && open.last().map(|(id, _)| *id) != parent {
                open.pop();
            }
            let Some((_, parent)) = open.last().copied() else { break };
            let text = node.text().unwrap_or_default();
            let pushed = match node.node_type() {
                NodeType::Root => continue,
                NodeType::Element => {
                    if open.len() > MAX_DEPTH {
                        return Err(format!("its elements are nested deeper than {MAX_DEPTH}"));
                    }
                    let pushed = tree.push_child(parent, NodeKind::Element, node.tag_name().name(), "");
                    if let Some(index) = pushed {
                        tree.set_namespace(index, node.tag_name().namespace());
                        for attribute in node.attributes() {
                            let attached = tree.push_attribute(index, attribute.name(), attribute.value());
                            attached.inspect(|attached| tree.set_namespace(*attached, attribute.namespace()));
                        }
                        open.push((node.id(), index));
                    }
                    for namespace in node.namespaces() {
                        tree.push_namespace(namespace.name().unwrap_or_default(), namespace.uri());
                    }
                    pushed
                }
                NodeType::Text => tree.push_child(parent, NodeKind::Text, "", text),
                NodeType::Comment => tree.push_child(parent, NodeKind::Comment, "", text),
                NodeType::PI => {
                    let (name, value) = node.pi().map_or(("", ""), |pi| (pi.target, pi.value.unwrap_or_default()));
                    tree.push_child(parent, NodeKind::ProcessingInstruction, name, value)
                }
            };
            if pushed.is_none() {
                return Err(format!("it has more than {MAX_NODES} nodes"));
            }
        }
        Ok(tree)
    }

    fn set_namespace(&mut self, index: u32, uri: Option<&str>) {
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.namespace = uri.map(str::to_owned);
        }
    }
}

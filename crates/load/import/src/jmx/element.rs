//! Elements of a plan: an element and, after it, the tree of what is below it.

use roxmltree::Node;

/// Trees within one another that are read.
const MAX_DEPTH: usize = 60;

/// Starts of the lines of a text, since the parser counts lines from the beginning each time.
#[derive(Debug)]
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(super) fn new(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start < at) + 1).unwrap_or(u32::MAX)
    }
}

/// Element with what is below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanElement<'a> {
    node: Node<'a, 'a>,
    tree: Option<Node<'a, 'a>>,
    lines: &'a LineStarts,
}

impl<'a> PlanElement<'a> {
    /// Elements of a tree, in order.
    pub(super) fn children(tree: Node<'a, 'a>, lines: &'a LineStarts) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for node in tree.children().filter(Node::is_element) {
            if node.has_tag_name("hashTree") {
                if let Some(last) = found.last_mut() {
                    last.tree = last.tree.or(Some(node));
                }
            } else {
                found.push(Self { node, tree: None, lines });
            }
        }
        found
    }

    /// Elements below this one.
    pub(super) fn below(&self) -> Vec<Self> {
        let depth = self.node.ancestors().take(MAX_DEPTH * 2).count();
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        self.tree.map(|tree| Self::children(tree, self.lines)).unwrap_or_default()
    }

    /// Class, such as `HTTPSamplerProxy`, without its package.
    pub(super) fn class(&self) -> &'a str {
        let name = self.node.tag_name().name();
        let class = if name == "TestElement" { self.node.attribute("testclass").unwrap_or(name) } else { name };
        class.rsplit('.').next().unwrap_or(class)
    }

    /// Class of its editor, which distinguishes elements of the same class.
    pub(super) fn gui_class(&self) -> &'a str {
        self.node.attribute("guiclass").unwrap_or_default()
    }

    /// Name that its author has given it.
    pub(super) fn name(&self) -> &'a str {
        self.node.attribute("testname").unwrap_or_default()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.node.attribute("enabled") != Some("false")
    }

    pub(super) fn line(&self) -> u32 {
        self.lines.line(self.node.range().start)
    }

    /// Text of a property; empty without it.
    pub(super) fn text(&self, name: &str) -> &'a str {
        property(self.node, name).and_then(|node| node.text()).unwrap_or_default()
    }

    /// Whether a property is true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).trim() == "true"
    }

    /// Property that is an element with properties of its own.
    pub(super) fn part(&self, name: &str) -> Option<PlanElement<'a>> {
        property(self.node, name).map(|node| Self { node, tree: None, lines: self.lines })
    }

    /// Elements of a list that is a property.
    pub(super) fn list(&self, name: &str) -> Vec<PlanElement<'a>> {
        let list = property(self.node, name);
        let nodes = list.into_iter().flat_map(|list| list.children().filter(Node::is_element));
        nodes.map(|node| Self { node, tree: None, lines: self.lines }).collect()
    }

    /// Own text, of a property in a list.
    pub(super) fn own_text(&self) -> &'a str {
        self.node.text().unwrap_or_default()
    }

    /// Names and values of a list of arguments: `Arguments.arguments`.
    pub(super) fn arguments(&self) -> Vec<PlanElement<'a>> {
        self.list("Arguments.arguments")
    }
}

fn property<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.attribute("name") == Some(name))
}

//! HTML to trees. Tags that are left out are those of HTML 4: `html`, `head` and `body`, and ends of paragraphs, items,
//! rows and cells.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};
use xpath_eval::NodeKind;

use super::{MAX_DEPTH, MarkupTree};

/// Elements without content.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"];
/// Elements that are in the head unless the body has begun.
const HEAD: [&str; 6] = ["base", "link", "meta", "script", "style", "title"];
/// Elements before which a paragraph ends.
const BLOCKS: [&str; 27] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "dir",
    "div",
    "dl",
    "fieldset",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];

/// Elements that end where another one begins, unless one of the third list is between them.
const ENDED_BY: [(&[&str], &[&str], &[&str]); 6] = [
    (&["li"], &["li"], &["ul", "ol", "dir", "menu"]),
    (&["dt", "dd"], &["dt", "dd"], &["dl"]),
    (&["option"], &["option", "optgroup"], &["select"]),
    (&["td", "th"], &["td", "th", "tr", "tbody", "thead", "tfoot"], &["table"]),
    (&["tr"], &["tr", "tbody", "thead", "tfoot"], &["table"]),
    (&["tbody", "thead", "tfoot"], &["tbody", "thead", "tfoot"], &["table"]),
];

/// Builder of a tree from tags.
struct HtmlBuilder {
    tree: MarkupTree,
    /// Open elements: their nodes and names; never empty.
    open: Vec<(u32, String)>,
    html: Option<u32>,
    head: Option<u32>,
    body: Option<u32>,
}

impl MarkupTree {
    /// Tree of an HTML document; every text is one.
    pub fn of_html(text: &str) -> Self {
        let mut emitter = DefaultEmitter::<()>::default();
        emitter.naively_switch_states(true);
        let mut builder =
            HtmlBuilder { tree: Self::empty(), open: vec![(0, String::new())], html: None, head: None, body: None };
        for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
            match token {
                Token::StartTag(tag) => {
                    let name = lossy(&tag.name);
                    let index = builder.start(&name, tag.self_closing);
                    let Some(index) = index else { continue };
                    for (name, value) in &tag.attributes {
                        builder.attribute(index, &lossy(name), &lossy(value));
                    }
                }
                Token::EndTag(tag) => builder.end(&lossy(&tag.name)),
                Token::String(text) => builder.text(&lossy(&text)),
                Token::Comment(text) => {
                    let parent = builder.current();
                    builder.tree.push_child(parent, NodeKind::Comment, "", &lossy(&text));
                }
                Token::Doctype(_) | Token::Error(_) => {}
            }
        }
        builder.tree
    }
}

impl HtmlBuilder {
    fn current(&self) -> u32 {
        self.open.last().map_or(0, |(index, _)| *index)
    }

    /// Begins an element; `None` if the tree is full.
    fn start(&mut self, name: &str, is_closed: bool) -> Option<u32> {
        match name {
            "html" => return self.ensure_html(),
            "head" => return self.ensure_head(),
            "body" => return self.ensure_body(),
            _ if self.body.is_none() && HEAD.contains(&name) => drop(self.ensure_head()),
            _ => drop(self.ensure_body()),
        }
        if BLOCKS.contains(&name) {
            self.close_within(&["p"], &["table", "td", "th", "button", "body"]);
        }
        for (ended, by, barriers) in ENDED_BY {
            if by.contains(&name) {
                self.close_within(ended, barriers);
            }
        }
        let index = self.tree.push_child(self.current(), NodeKind::Element, name, "")?;
        if !is_closed && !VOID.contains(&name) && self.open.len() < MAX_DEPTH {
            self.open.push((index, name.to_owned()));
        }
        Some(index)
    }

    fn end(&mut self, name: &str) {
        if matches!(name, "html" | "body") {
            return;
        }
        if name == "head" {
            self.open.truncate(2);
            return;
        }
        // Tags that close nothing have no effect; the body stays open.
        let floor = self.open.iter().position(|(_, open)| open == "body").map_or(1, |at| at + 1);
        let at = self.open.iter().rposition(|(_, open)| open == name).filter(|at| *at >= floor);
        if let Some(at) = at {
            self.open.truncate(at);
        }
    }

    fn text(&mut self, text: &str) {
        let is_in_head = self.open.len() > 3 && self.body.is_none();
        if self.body.is_none() && !is_in_head {
            if text.trim().is_empty() {
                return;
            }
            self.ensure_body();
        }
        self.tree.push_child(self.current(), NodeKind::Text, "", text);
    }

    fn attribute(&mut self, index: u32, name: &str, value: &str) {
        let Some(node) = self.tree.get(index) else { return };
        let is_there = node.attributes.iter().any(|at| self.tree.get(*at).is_some_and(|known| known.name == name));
        if !is_there {
            self.tree.push_attribute(index, name, value);
        }
    }

    fn ensure_html(&mut self) -> Option<u32> {
        if self.html.is_none() {
            self.html = self.tree.push_child(0, NodeKind::Element, "html", "");
            self.open.extend(self.html.map(|index| (index, "html".to_owned())));
        }
        self.html
    }

    fn ensure_head(&mut self) -> Option<u32> {
        let html = self.ensure_html()?;
        if self.head.is_none() && self.body.is_none() {
            self.head = self.tree.push_child(html, NodeKind::Element, "head", "");
        }
        if self.body.is_none() && self.open.len() == 2 {
            self.open.extend(self.head.map(|index| (index, "head".to_owned())));
        }
        self.head
    }

    fn ensure_body(&mut self) -> Option<u32> {
        let html = self.ensure_html()?;
        if self.body.is_none() {
            self.open.truncate(2);
            self.body = self.tree.push_child(html, NodeKind::Element, "body", "");
            self.open.extend(self.body.map(|index| (index, "body".to_owned())));
        }
        self.body
    }

    /// Closes the last open element of these names, unless a barrier is open within it.
    fn close_within(&mut self, names: &[&str], barriers: &[&str]) {
        let is_one = |list: &[&str], name: &str| list.contains(&name);
        let last = self.open.iter().rposition(|(_, name)| is_one(names, name) || is_one(barriers, name));
        if let Some(at) = last.filter(|at| self.open.get(*at).is_some_and(|(_, name)| is_one(names, name))) {
            self.open.truncate(at);
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

//! YAML to trees: the first document of a file, by the core schema.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::MAX_DEPTH;
use super::node::{SourceNode, SourceText, SourceValue};
use crate::error::Mismatch;

/// Most nodes of a document, counted again where an alias repeats them.
const MAX_NODES: usize = 2_000_000;

/// Parses the first document of a YAML file.
///
/// # Errors
/// The first syntax error.
pub(crate) fn parse_yaml(text: &str) -> Result<SourceNode<'static>, Mismatch> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tree = YamlTree::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            Mismatch::new(line(error.marker().line()), "YAML", format!("text that is not YAML: {}", error.info()))
        })?;
        let line = line(span.start.line());
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        tree.take(event, line)?;
    }
    tree.root.ok_or_else(|| Mismatch::new(1, "a YAML document", "an empty file"))
}

fn line(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX).max(1)
}

/// Document that is being built.
#[derive(Debug, Default)]
struct YamlTree {
    root: Option<SourceNode<'static>>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, ClosedNode>,
    nodes: usize,
}

/// List or map whose end has not been read.
#[derive(Debug)]
struct OpenNode {
    node: SourceNode<'static>,
    /// Name of the next member of a map.
    key: Option<String>,
    anchor: usize,
    nodes_before: usize,
    /// Lists and maps within one another, below it.
    height: usize,
}

/// Whole value.
#[derive(Clone, Debug)]
struct ClosedNode {
    node: SourceNode<'static>,
    /// Nodes in it.
    size: usize,
    /// Lists and maps within one another, itself included.
    height: usize,
}

impl YamlTree {
    fn take(&mut self, event: Event<'_>, line: u32) -> Result<(), Mismatch> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str");
                let value = if style == ScalarStyle::Plain && !is_text {
                    plain(&text)
                } else {
                    SourceValue::Text(SourceText::Plain(Cow::Owned(text.into_owned())))
                };
                self.add(ClosedNode { node: SourceNode { line, value }, size: 1, height: 0 }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(SourceValue::List(Vec::new()), anchor, line),
            Event::MappingStart(anchor, _) => self.open(SourceValue::Map(Vec::new()), anchor, line),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let size = 1 + self.nodes - open.nodes_before;
                let closed = ClosedNode { node: open.node, size, height: open.height + 1 };
                self.nodes = open.nodes_before;
                self.add(closed, open.anchor)
            }
            Event::Alias(anchor) => {
                let Some(closed) = self.anchors.get(&anchor) else {
                    return Err(Mismatch::new(line, "an alias of a value before it", "an alias of its own value"));
                };
                if self.nodes + closed.size > MAX_NODES {
                    return Err(too_many(line));
                }
                let closed = closed.clone();
                self.add(closed, 0)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, value: SourceValue<'static>, anchor: usize, line: u32) -> Result<(), Mismatch> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        let node = SourceNode { line, value };
        self.open.push(OpenNode { node, key: None, anchor, nodes_before: self.nodes, height: 0 });
        Ok(())
    }

    /// Adds a whole value to the list or map around it.
    fn add(&mut self, closed: ClosedNode, anchor: usize) -> Result<(), Mismatch> {
        self.nodes += closed.size;
        let line = closed.node.line;
        if self.nodes > MAX_NODES {
            return Err(too_many(line));
        }
        if self.open.len() + closed.height > MAX_DEPTH {
            return Err(too_deep(line));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, closed.clone());
        }
        let ClosedNode { node, height, .. } = closed;
        let Some(parent) = self.open.last_mut() else {
            self.root = self.root.take().or(Some(node));
            return Ok(());
        };
        parent.height = parent.height.max(height);
        match &mut parent.node.value {
            SourceValue::List(items) => items.push(node),
            SourceValue::Map(members) => match parent.key.take() {
                None => parent.key = Some(node.scalar().unwrap_or_else(|| node.to_json())),
                Some(key) if key == "<<" && node.is_map() => merge(members, node),
                Some(key) => members.push((SourceText::Plain(Cow::Owned(key)), node)),
            },
            _ => {}
        }
        Ok(())
    }
}

fn too_deep(line: u32) -> Mismatch {
    Mismatch::new(line, format!("at most {MAX_DEPTH} lists and maps within one another"), "more")
}

fn too_many(line: u32) -> Mismatch {
    Mismatch::new(line, format!("at most {MAX_NODES} values"), "more")
}

/// Adds the members of a merge key (`<<`) that are not there.
fn merge(members: &mut Vec<(SourceText<'static>, SourceNode<'static>)>, node: SourceNode<'static>) {
    let SourceValue::Map(others) = node.value else { return };
    let mut known: HashSet<String> = members.iter().map(|(name, _)| name.get().into_owned()).collect();
    members.extend(others.into_iter().filter(|(name, _)| known.insert(name.get().into_owned())));
}

/// Value of a plain scalar.
fn plain(text: &str) -> SourceValue<'static> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => SourceValue::Null,
        "true" | "True" | "TRUE" => SourceValue::Bool(true),
        "false" | "False" | "FALSE" => SourceValue::Bool(false),
        _ if serde_json::from_str::<serde_json::Number>(text).is_ok() => {
            SourceValue::Number(Cow::Owned(text.to_owned()))
        }
        _ => SourceValue::Text(SourceText::Plain(Cow::Owned(text.to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_types_and_lines() {
        let node = parse_yaml("a: 1\nb: [x, '2', true, ~]\nc:\n  - |\n    two\n    lines\n").unwrap();
        assert_eq!(node.to_json(), r#"{"a": 1, "b": ["x", "2", true, null], "c": ["two\nlines\n"]}"#);
        assert_eq!(node.get("b").unwrap().line, 2);
    }

    #[test]
    fn aliases_and_merge_keys_repeat_values() {
        let node = parse_yaml("a: &x {b: 1, c: 2}\nd: *x\ne:\n  <<: *x\n  f: 3\n").unwrap();
        assert_eq!(node.to_json(), r#"{"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 2}, "e": {"b": 1, "c": 2, "f": 3}}"#);
    }

    #[test]
    fn an_error_has_its_line() {
        assert_eq!(parse_yaml("a: b\nc: [1,\n").unwrap_err().expected, "YAML");
        assert_eq!(parse_yaml("").unwrap_err().found, "an empty file");
        let deep = "[".repeat(5_000);
        assert!(parse_yaml(&deep).is_err());
        let deep: String = (0..200).map(|depth| format!("{}- \n", " ".repeat(depth))).collect();
        assert!(parse_yaml(&deep).unwrap_err().expected.contains("at most 100"));
    }

    #[test]
    fn aliases_of_aliases_are_bounded_in_number_and_depth() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(parse_yaml(&bomb).unwrap_err().expected.contains("values"));
        let mut chain = "a0: &a0 [x]\n".to_owned();
        for level in 1..2_000 {
            chain.push_str(&format!("a{level}: &a{level} [*a{}, x]\n", level - 1));
        }
        assert!(parse_yaml(&chain).unwrap_err().expected.contains("within one another"));
    }
}

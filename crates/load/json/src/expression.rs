//! Expressions of filters.

use regex::Regex;

use super::literal::Literal;
use super::segment::Segment;

/// Condition of a filter.
#[derive(Clone, Debug)]
pub(super) enum Logical {
    Any(Vec<Logical>),
    All(Vec<Logical>),
    Not(Box<Logical>),
    Exists(NodeQuery),
    Compare(Operand, Comparison, Operand),
    Match(Operand, Pattern),
}

/// Query within a filter, of the current node or of the root.
#[derive(Clone, Debug)]
pub(super) struct NodeQuery {
    pub(super) is_root: bool,
    pub(super) segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Value that is compared.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Literal(Literal),
    /// Query of at most one node.
    Single(NodeQuery),
    Length(Box<Operand>),
    Count(NodeQuery),
    /// Value of a query, if it matches exactly one node.
    ValueOf(NodeQuery),
}

/// Regular expression (RFC 9485), of `match` or `search`.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Compiled once; `None` if it is invalid, and matches nothing.
    Fixed(Option<Box<Regex>>),
    Dynamic {
        pattern: Operand,
        is_whole: bool,
    },
}

/// Compiles a pattern of RFC 9485; `is_whole`: it must match all of a text.
pub(super) fn compile_pattern(pattern: &str, is_whole: bool) -> Option<Regex> {
    let mut text = String::with_capacity(pattern.len() + 8);
    let (mut in_class, mut is_escaped) = (false, false);
    for character in pattern.chars() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '.' if !in_class => {
                text.push_str("[^\\n\\r]");
                continue;
            }
            _ => {}
        }
        text.push(character);
    }
    Regex::new(&if is_whole { format!("^(?:{text})$") } else { text }).ok()
}

//! Evaluation of paths.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::error::JsonTextError;
use super::expression::{Comparison, Logical, NodeQuery, Operand, Pattern, compile_pattern};
use super::literal::{Operated, unescaped};
use super::scan::{elements, members};
use super::segment::{Segment, Selector};

/// Evaluation on one text.
pub(super) struct Evaluation<'b> {
    pub(super) root: &'b [u8],
}

/// Selectors of a segment, and the segments after it.
#[derive(Clone, Copy)]
struct PathStep<'p> {
    selectors: &'p [Selector],
    rest: &'p [Segment],
}

impl<'b> Evaluation<'b> {
    /// Appends the nodes that the segments select from a node.
    pub(super) fn select(
        &self,
        segments: &[Segment],
        node: &'b [u8],
        matches: &mut Vec<&'b [u8]>,
    ) -> Result<(), JsonTextError> {
        let Some((segment, rest)) = segments.split_first() else {
            matches.push(node);
            return Ok(());
        };
        let step = PathStep { selectors: &segment.selectors, rest };
        if segment.is_descendant { self.descend(step, node, matches) } else { self.apply(step, node, matches) }
    }

    /// Applies selectors to a node and to all below it, parents first.
    fn descend(&self, step: PathStep<'_>, node: &'b [u8], matches: &mut Vec<&'b [u8]>) -> Result<(), JsonTextError> {
        self.apply(step, node, matches)?;
        children(node, |child| self.descend(step, child, matches))
    }

    fn apply(&self, step: PathStep<'_>, node: &'b [u8], matches: &mut Vec<&'b [u8]>) -> Result<(), JsonTextError> {
        let PathStep { selectors, rest } = step;
        for selector in selectors {
            match selector {
                Selector::Name(name) => {
                    if let Some(value) = member(node, name)? {
                        self.select(rest, value, matches)?;
                    }
                }
                Selector::Index(index) => {
                    if let Some(value) = element(node, *index)? {
                        self.select(rest, value, matches)?;
                    }
                }
                Selector::Wildcard => children(node, |child| self.select(rest, child, matches))?,
                Selector::Slice { start, end, step } => {
                    for value in slice(node, *start, *end, *step)? {
                        self.select(rest, value, matches)?;
                    }
                }
                Selector::Filter(condition) => children(node, |child| {
                    if self.holds(condition, child)? { self.select(rest, child, matches) } else { Ok(()) }
                })?,
            }
        }
        Ok(())
    }

    fn holds(&self, condition: &Logical, node: &'b [u8]) -> Result<bool, JsonTextError> {
        Ok(match condition {
            Logical::Any(conditions) => {
                for condition in conditions {
                    if self.holds(condition, node)? {
                        return Ok(true);
                    }
                }
                false
            }
            Logical::All(conditions) => {
                for condition in conditions {
                    if !self.holds(condition, node)? {
                        return Ok(false);
                    }
                }
                true
            }
            Logical::Not(condition) => !self.holds(condition, node)?,
            Logical::Exists(query) => !self.nodes(query, node)?.is_empty(),
            Logical::Compare(left, comparison, right) => {
                is_true(&self.operated(left, node)?, *comparison, &self.operated(right, node)?)
            }
            Logical::Match(operand, pattern) => {
                let Operated::Text(text) = self.operated(operand, node)? else { return Ok(false) };
                match pattern {
                    Pattern::Fixed(regex) => regex.as_ref().is_some_and(|regex| regex.is_match(&text)),
                    Pattern::Dynamic { pattern, is_whole } => {
                        let Operated::Text(pattern) = self.operated(pattern, node)? else { return Ok(false) };
                        compile_pattern(&pattern, *is_whole).is_some_and(|regex| regex.is_match(&text))
                    }
                }
            }
        })
    }

    fn nodes(&self, query: &NodeQuery, node: &'b [u8]) -> Result<Vec<&'b [u8]>, JsonTextError> {
        let mut nodes = Vec::new();
        self.select(&query.segments, if query.is_root { self.root } else { node }, &mut nodes)?;
        Ok(nodes)
    }

    fn operated<'o>(&self, operand: &'o Operand, node: &'b [u8]) -> Result<Operated<'o>, JsonTextError>
    where
        'b: 'o,
    {
        let count = |n: usize| Operated::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        Ok(match operand {
            Operand::Literal(literal) => Operated::of_literal(literal),
            Operand::Single(query) | Operand::ValueOf(query) => match self.nodes(query, node)?.as_slice() {
                [one] => Operated::of_node(one),
                _ => Operated::Nothing,
            },
            Operand::Count(query) => count(self.nodes(query, node)?.len()),
            Operand::Length(operand) => match self.operated(operand, node)? {
                Operated::Text(text) => count(text.chars().count()),
                Operated::Json(json) => {
                    let mut length = 0;
                    children(json, |_| {
                        length += 1;
                        Ok(())
                    })?;
                    count(length)
                }
                _ => Operated::Nothing,
            },
        })
    }
}

fn is_true(left: &Operated<'_>, comparison: Comparison, right: &Operated<'_>) -> bool {
    let is_less = |a: &Operated<'_>, b: &Operated<'_>| a.order(b) == Some(Ordering::Less);
    match comparison {
        Comparison::Equal => left.is_equal(right),
        Comparison::NotEqual => !left.is_equal(right),
        Comparison::Less => is_less(left, right),
        Comparison::Greater => is_less(right, left),
        Comparison::LessOrEqual => is_less(left, right) || left.is_equal(right),
        Comparison::GreaterOrEqual => is_less(right, left) || left.is_equal(right),
    }
}

/// Visits the elements or the values of members of a node.
fn children<'b>(
    node: &'b [u8],
    mut visit: impl FnMut(&'b [u8]) -> Result<(), JsonTextError>,
) -> Result<(), JsonTextError> {
    let mut failed = Ok(());
    let mut step = |child| {
        failed = visit(child);
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    if node.first() == Some(&b'{') {
        members(node, |_, value| step(value))?;
    } else {
        elements(node, step)?;
    }
    failed
}

/// Value of the first member of a name.
fn member<'b>(node: &'b [u8], name: &str) -> Result<Option<&'b [u8]>, JsonTextError> {
    let mut found = None;
    members(node, |key, value| {
        if !is_named(key, name) {
            return ControlFlow::Continue(());
        }
        found = Some(value);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Whether a key, with its quotes, is this name.
pub(super) fn is_named(key: &[u8], name: &str) -> bool {
    let inner = key.get(1..key.len() - 1).unwrap_or_default();
    if inner == name.as_bytes() {
        // A name with a backslash is never the same as its escaped form.
        return !name.contains('\\');
    }
    inner.contains(&b'\\') && unescaped(key).is_some_and(|key| key == name)
}

/// Element of an index, from the end if it is negative.
fn element(node: &[u8], index: i64) -> Result<Option<&[u8]>, JsonTextError> {
    if index < 0 {
        let all = all_elements(node)?;
        let from_start = usize::try_from(index.unsigned_abs()).ok().and_then(|back| all.len().checked_sub(back));
        return Ok(from_start.and_then(|at| all.get(at).copied()));
    }
    let (mut left, mut found) = (index, None);
    elements(node, |element| {
        if left > 0 {
            left -= 1;
            return ControlFlow::Continue(());
        }
        found = Some(element);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

fn all_elements(node: &[u8]) -> Result<Vec<&[u8]>, JsonTextError> {
    let mut all = Vec::new();
    elements(node, |element| {
        all.push(element);
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

/// Elements of a slice (RFC 9535, 2.3.4.2.2).
fn slice(node: &[u8], start: Option<i64>, end: Option<i64>, step: i64) -> Result<Vec<&[u8]>, JsonTextError> {
    if step == 0 {
        return Ok(Vec::new());
    }
    let all = all_elements(node)?;
    let length = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at >= 0 { at } else { length.saturating_add(at) };
    let mut taken = Vec::new();
    let mut take = |at: i64| taken.extend(usize::try_from(at).ok().and_then(|at| all.get(at)));
    if step > 0 {
        let upper = from_end(end.unwrap_or(length)).clamp(0, length);
        let mut at = from_end(start.unwrap_or(0)).clamp(0, length);
        while at < upper {
            take(at);
            at = at.saturating_add(step);
        }
    } else {
        let upper = start.map_or(length - 1, from_end).clamp(-1, length - 1);
        let lower = end.map_or(-1, |end| from_end(end).clamp(-1, length - 1));
        let mut at = upper;
        while at > lower {
            take(at);
            at = at.saturating_add(step);
        }
    }
    Ok(taken)
}

//! Paths of routes as a tree of segments, which finds all paths that match, the most specific first.
//!
//! Each node is visited at most once per request, since it has one parent and stands at one depth: the cost is bounded
//! by the number of routes, whatever the path.

use std::collections::HashMap;

use regex::Regex;

use super::captures::CaptureValues;
use crate::config::{MAX_SEGMENT_CAPTURES, PathSegment, path_segments};

/// A tree with a value for each path.
#[derive(Clone, Debug)]
pub(super) struct PathTree<T> {
    root: PathNode<T>,
}

/// Paths that begin with the same segments.
#[derive(Clone, Debug)]
struct PathNode<T> {
    fixed: HashMap<Box<str>, PathNode<T>>,
    /// The most fixed text first, then in order of insertion.
    patterns: Vec<PatternNode<T>>,
    capture: Option<Box<PathNode<T>>>,
    /// Value of the path that captures the rest from here.
    rest: Option<T>,
    /// Value of the path that ends here.
    end: Option<T>,
}

#[derive(Clone, Debug)]
struct PatternNode<T> {
    expression: Regex,
    captures: usize,
    fixed_bytes: usize,
    node: PathNode<T>,
}

impl<T> Default for PathNode<T> {
    fn default() -> Self {
        Self { fixed: HashMap::new(), patterns: Vec::new(), capture: None, rest: None, end: None }
    }
}

impl<T> Default for PathTree<T> {
    fn default() -> Self {
        Self { root: PathNode::default() }
    }
}

impl<T: Default> PathTree<T> {
    /// The value of a path, which is inserted if it is new.
    ///
    /// # Errors
    /// The path is invalid.
    pub(super) fn entry(&mut self, path: &str) -> Result<&mut T, String> {
        let mut node = &mut self.root;
        for segment in path_segments(path).map_err(|fault| fault.what)? {
            node = match segment {
                PathSegment::Fixed(text) => node.fixed.entry(text.into()).or_default(),
                PathSegment::Capture(_) => node.capture.get_or_insert_default().as_mut(),
                PathSegment::Pattern(pattern) => {
                    let same = |it: &PatternNode<T>| it.expression.as_str() == pattern.expression.as_str();
                    let at = match node.patterns.iter().position(same) {
                        Some(at) => at,
                        None => {
                            let at = node.patterns.partition_point(|it| it.fixed_bytes >= pattern.fixed_bytes);
                            let captures = pattern.names.len();
                            let (expression, fixed_bytes) = (pattern.expression, pattern.fixed_bytes);
                            let new = PatternNode { expression, captures, fixed_bytes, node: PathNode::default() };
                            node.patterns.insert(at, new);
                            at
                        }
                    };
                    &mut node.patterns[at].node
                }
                // The last one.
                PathSegment::Rest(_) => return Ok(node.rest.get_or_insert_default()),
            };
        }
        Ok(node.end.get_or_insert_default())
    }
}

impl<T> PathTree<T> {
    /// The first result of `accept` on the values of the paths that match, the most specific first, with their
    /// captures.
    pub(super) fn find<'a, R>(
        &'a self,
        path: &'a str,
        accept: &mut impl FnMut(&'a T, &CaptureValues<'a>) -> Option<R>,
    ) -> Option<R> {
        let inner = path.strip_prefix('/')?;
        self.root.find(Some(inner), &mut CaptureValues::default(), accept)
    }

    /// All values.
    pub(super) fn values(&self) -> Vec<&T> {
        let mut all = Vec::new();
        self.root.collect(&mut all);
        all
    }
}

impl<T> PathNode<T> {
    /// `path` is what follows, without its first slash; None at the end.
    fn find<'a, R>(
        &'a self,
        path: Option<&'a str>,
        values: &mut CaptureValues<'a>,
        accept: &mut impl FnMut(&'a T, &CaptureValues<'a>) -> Option<R>,
    ) -> Option<R> {
        let Some(path) = path else { return self.end.as_ref().and_then(|end| accept(end, values)) };
        let (segment, behind) = match path.split_once('/') {
            Some((segment, behind)) => (segment, Some(behind)),
            None => (path, None),
        };
        if let Some(node) = self.fixed.get(segment)
            && let Some(found) = node.find(behind, values, accept)
        {
            return Some(found);
        }
        let captured = values.len();
        // A capture has at least one character.
        if !segment.is_empty() {
            for pattern in &self.patterns {
                if pattern.push_captures(segment, values)
                    && let Some(found) = pattern.node.find(behind, values, accept)
                {
                    return Some(found);
                }
                values.truncate(captured);
            }
            if let Some(node) = &self.capture {
                values.push(segment);
                if let Some(found) = node.find(behind, values, accept) {
                    return Some(found);
                }
                values.truncate(captured);
            }
        }
        let rest = self.rest.as_ref()?;
        values.push(path);
        let found = accept(rest, values);
        values.truncate(captured);
        found
    }

    fn collect<'a>(&'a self, all: &mut Vec<&'a T>) {
        all.extend(self.end.iter().chain(&self.rest));
        let patterns = self.patterns.iter().map(|pattern| &pattern.node);
        for node in self.fixed.values().chain(patterns).chain(self.capture.as_deref()) {
            node.collect(all);
        }
    }
}

impl<T> PatternNode<T> {
    /// Whether the segment matches; its captures are appended then.
    fn push_captures<'a>(&self, segment: &'a str, values: &mut CaptureValues<'a>) -> bool {
        let Some(captures) = self.expression.captures(segment) else { return false };
        // A group that took no part, in an alternative, is empty.
        (0..self.captures).for_each(|k| values.push(captures.name(CAPTURE_GROUPS[k]).map_or("", |it| it.as_str())));
        true
    }
}

/// Names of the groups of a pattern's captures.
const CAPTURE_GROUPS: [&str; MAX_SEGMENT_CAPTURES] =
    ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"];

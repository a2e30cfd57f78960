//! Segments of a path.

use super::expression::Logical;

/// Segment: selectors, applied to the children of nodes or to all descendants.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) is_descendant: bool,
    pub(super) selectors: Vec<Selector>,
}

#[derive(Clone, Debug)]
pub(super) enum Selector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(Box<Logical>),
}

/// Whether at most one node can match.
pub(super) fn are_singular(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| {
        !segment.is_descendant && matches!(segment.selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)])
    })
}

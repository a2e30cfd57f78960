//! A description with its references.

use std::borrow::Cow;
use std::cell::Cell;

use crate::builder::percent_decoded;
use crate::tree::SourceNode;

/// References that are followed one after another.
const MAX_REFERENCES: usize = 20;

/// Description of an API.
#[derive(Debug)]
pub(super) struct ApiDescription<'a> {
    pub(super) root: &'a SourceNode<'a>,
    /// State of the generator of made-up values.
    random: Cell<u64>,
}

impl<'a> ApiDescription<'a> {
    pub(super) fn new(root: &'a SourceNode<'a>, seed: u64) -> Self {
        Self { root, random: Cell::new(seed) }
    }

    /// Whether it is Swagger 2.
    pub(super) fn is_swagger(&self) -> bool {
        self.root.get("swagger").is_some()
    }

    /// The node, or the one that it refers to within the file; itself if that is not there.
    pub(super) fn resolve(&self, node: &'a SourceNode<'a>) -> &'a SourceNode<'a> {
        let mut at = node;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = at.text_of("$ref") else { return at };
            match self.pointer(&reference) {
                Some(next) => at = next,
                None => return at,
            }
        }
        at
    }

    /// Reference of a node that is not in the file.
    pub(super) fn missing(&self, node: &'a SourceNode<'a>) -> Option<String> {
        self.resolve(node).text_of("$ref")
    }

    /// Node of a reference such as `#/components/schemas/Pet`.
    fn pointer(&self, reference: &str) -> Option<&'a SourceNode<'a>> {
        let path = reference.strip_prefix('#')?;
        let mut node = self.root;
        for part in path.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let part = if part.contains('%') {
                percent_decoded(&part).map_or(Cow::Borrowed(part.as_str()), Cow::Owned)
            } else {
                Cow::Borrowed(part.as_str())
            };
            node = match part.parse::<usize>() {
                Ok(index) if !node.is_map() => node.items().get(index)?,
                _ => node.get(&part)?,
            };
        }
        Some(node)
    }

    /// Next random number: SplitMix64, so that a seed means the same values in each version.
    pub(super) fn random(&self) -> u64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

//! A description with its references.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::builder::percent_decoded;
use crate::tree::{SourceNode, SourceValue};

/// References that are followed one after another.
const MAX_REFERENCES: usize = 20;

/// OpenAPI or Swagger document, with indexes for its references and a limit on examples.
#[derive(Debug)]
pub(super) struct ApiDescription<'a> {
    root: &'a SourceNode<'a>,
    /// State of the generator of made-up values.
    random: Cell<u64>,
    /// Members of large maps, by the address of the map: each reference looks one up.
    indexes: RefCell<HashMap<usize, MemberIndex>>,
    /// Values that all examples together may have yet.
    values_left: Cell<usize>,
}

/// Places of the members of a map by their names.
type MemberIndex = HashMap<String, usize>;

/// Members from which on a map has an index.
const MIN_INDEXED_MEMBERS: usize = 32;
/// Values of all examples; with more, each has only a few.
pub(super) const MAX_ALL_VALUES: usize = 100_000;

impl<'a> ApiDescription<'a> {
    pub(super) fn new(root: &'a SourceNode<'a>, seed: u64) -> Self {
        Self { root, random: Cell::new(seed), indexes: RefCell::default(), values_left: Cell::new(MAX_ALL_VALUES) }
    }

    /// Member of the whole description.
    pub(super) fn get(&self, key: &str) -> Option<&'a SourceNode<'a>> {
        self.member(self.root, key)
    }

    /// Text of a member of the whole description.
    pub(super) fn text_of(&self, key: &str) -> Option<String> {
        self.get(key).and_then(SourceNode::scalar)
    }

    /// Member of a map, found through an index.
    pub(super) fn member(&self, node: &'a SourceNode<'a>, key: &str) -> Option<&'a SourceNode<'a>> {
        let SourceValue::Map(members) = &node.value else { return None };
        if members.len() < MIN_INDEXED_MEMBERS {
            return node.get(key);
        }
        let mut indexes = self.indexes.borrow_mut();
        let index = indexes.entry(std::ptr::from_ref(node).addr()).or_insert_with(|| {
            let mut index = MemberIndex::default();
            for (place, (name, _)) in node.members().enumerate() {
                index.entry(name.into_owned()).or_insert(place);
            }
            index
        });
        index.get(key).and_then(|place| members.get(*place)).map(|(_, member)| member)
    }

    /// Counts a value of an example.
    pub(super) fn count_value(&self) {
        self.values_left.set(self.values_left.get().saturating_sub(1));
    }

    /// Whether examples may be long: all together have not had too many values yet.
    pub(super) fn has_values_left(&self) -> bool {
        self.values_left.get() > 0
    }

    /// Whether it is Swagger 2.
    pub(super) fn is_swagger(&self) -> bool {
        self.get("swagger").is_some()
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
                _ => self.member(node, &part)?,
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

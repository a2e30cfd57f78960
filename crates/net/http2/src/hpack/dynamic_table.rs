//! The dynamic table (RFC 7541 sections 2.3.2 and 4): fields that were sent before, the newest first.

use std::collections::VecDeque;

use super::field_size;

/// Bytes of evicted fields that may lie before the oldest one, at least, before the rest is moved over them.
const MIN_DEAD_BYTES: usize = 1024;

/// Fields within a size in bytes; a new one evicts the oldest until it fits.
///
/// Names and values lie one behind the other in one buffer, so that a field is a slice, an insertion is a copy, and
/// nothing is allocated once the buffer has its size: at most about twice the table's.
#[derive(Clone, Debug, Default)]
pub struct DynamicTable {
    fields: VecDeque<TableField>,
    bytes: Vec<u8>,
    /// Bytes that were dropped from the front of `bytes` so far.
    dropped: u64,
    size: usize,
    max_size: usize,
    generation: u64,
}

/// Place of a field.
#[derive(Clone, Copy, Debug)]
struct TableField {
    /// Start in the sequence of all bytes ever inserted.
    start: u64,
    name_length: u32,
    value_length: u32,
}

impl TableField {
    fn length(self) -> usize {
        self.name_length as usize + self.value_length as usize
    }
}

impl DynamicTable {
    /// Empty table of at most this size, in bytes.
    pub fn new(max_size: usize) -> Self {
        Self { max_size, ..Self::default() }
    }

    /// Number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Size of all fields, in bytes, with 32 for each.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Maximum size, in bytes.
    #[inline]
    pub fn max_size(&self) -> usize {
        self.max_size
    }

    /// Number that changes with the table: what was derived from a table of the same generation still holds.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Name and value at an index from 0, the newest, on.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let field = self.fields.get(index)?;
        let start = (field.start - self.dropped) as usize;
        let bytes = self.bytes.get(start..start + field.length())?;
        Some(bytes.split_at(field.name_length as usize))
    }

    /// Sets the maximum size, and evicts what no longer fits.
    pub fn resize(&mut self, max_size: usize) {
        if self.max_size != max_size {
            self.max_size = max_size;
            self.generation += 1;
            self.evict(max_size);
        }
    }

    /// Inserts a field; one that is larger than the table only empties it.
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation += 1;
        let size = field_size(name, value);
        if size > self.max_size {
            return self.evict(0);
        }
        self.evict(self.max_size - size);
        self.size += size;
        let start = self.dropped + self.bytes.len() as u64;
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.fields.push_front(TableField { start, name_length: name.len() as u32, value_length: value.len() as u32 });
    }

    /// Evicts the oldest fields until the others have at most this size.
    fn evict(&mut self, max_size: usize) {
        while self.size > max_size {
            let Some(field) = self.fields.pop_back() else { break };
            self.size -= field.length() + super::FIELD_OVERHEAD_BYTES;
        }
        let end = self.dropped + self.bytes.len() as u64;
        let live = self.fields.back().map_or(end, |field| field.start);
        let dead = (live - self.dropped) as usize;
        if dead > MIN_DEAD_BYTES.max(self.bytes.len() / 2) {
            self.bytes.copy_within(dead.., 0);
            self.bytes.truncate(self.bytes.len() - dead);
            self.dropped = live;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Action {
        Insert(Vec<u8>, Vec<u8>),
        Resize(usize),
    }

    fn action() -> impl Strategy<Value = Action> {
        let text = || prop::collection::vec(any::<u8>(), 0..200);
        prop_oneof![
            9 => (text(), text()).prop_map(|(name, value)| Action::Insert(name, value)),
            1 => (0_usize..2000).prop_map(Action::Resize),
        ]
    }

    proptest! {
        #[test]
        fn the_table_is_that_of_a_list(actions in prop::collection::vec(action(), 0..200)) {
            let mut table = DynamicTable::new(1000);
            let (mut list, mut max_size) = (VecDeque::<(Vec<u8>, Vec<u8>)>::new(), 1000);
            for action in actions {
                let before = table.generation();
                match action {
                    Action::Insert(name, value) => {
                        table.insert(&name, &value);
                        prop_assert_ne!(table.generation(), before);
                        list.push_front((name, value));
                    }
                    Action::Resize(size) => {
                        table.resize(size);
                        max_size = size;
                    }
                }
                let size = |list: &VecDeque<(Vec<u8>, Vec<u8>)>| -> usize {
                    list.iter().map(|(name, value)| field_size(name, value)).sum()
                };
                while size(&list) > max_size {
                    list.pop_back();
                }
                prop_assert_eq!((table.len(), table.size()), (list.len(), size(&list)));
                for (index, (name, value)) in list.iter().enumerate() {
                    prop_assert_eq!(table.get(index), Some((name.as_slice(), value.as_slice())));
                }
                prop_assert_eq!(table.get(list.len()), None);
                prop_assert!(table.bytes.len() <= 2 * 2000 + MIN_DEAD_BYTES + 400, "{} bytes", table.bytes.len());
            }
        }
    }
}

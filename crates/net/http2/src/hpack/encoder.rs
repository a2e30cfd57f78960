//! Encoder of field blocks (RFC 7541 section 6).
//!
//! A field is an index where a table has it. Otherwise it is a literal, and the question is whether to insert it: an
//! insertion evicts another field and makes all blocks invalid that were kept as bytes, so it has to repay. What has
//! been sent before will be sent again, as the constant fields of a template; what is sent for the first time may be a
//! number that never comes back. So a field is inserted when it is sent for the second time, by a small memory of
//! hashes; one with a new name at once, since at least its name comes back.
//!
//! Secrets that could be guessed byte by byte are never inserted, nor by proxies behind (RFC 7541 section 7.1.3):
//! credentials, and short cookies. A load has no attacker on its connection, but a proxy under test should do the work
//! that curl or a browser would cause.

use std::collections::VecDeque;

use super::static_table::{self, STATIC_COUNT, StaticMatch};
use super::{
    DEFAULT_TABLE_BYTES, DynamicTable, LiteralKind, encode_huffman, encode_integer, field_size, huffman_length,
};

/// Hashes of fields that were sent lately, by their low bits.
const SEEN_COUNT: usize = 64;

/// Cookies from this length on, in bytes, are taken to be too long to be guessed.
const MIN_INDEXED_COOKIE_BYTES: usize = 20;

/// Choice of the literal fields to insert into the table; secrets never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexingPolicy {
    /// Fields that were sent before, and fields with a new name.
    #[default]
    Repeated,
    /// All.
    All,
}

/// Encoder of the blocks of one direction of a connection.
#[derive(Debug)]
pub struct HpackEncoder {
    table: DynamicTable,
    /// Hashes of the table's fields, in its order.
    hashes: VecDeque<FieldHash>,
    seen: [u32; SEEN_COUNT],
    policy: IndexingPolicy,
    /// Maximum of the table's size, whatever the peer permits.
    own_max_size: usize,
    resize: Option<PendingResize>,
    is_stable: bool,
    uses_huffman: bool,
}

/// Change of the table's size, to be sent at the start of the next block.
#[derive(Clone, Copy, Debug)]
struct PendingResize {
    smallest: usize,
    last: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldHash {
    name: u32,
    field: u32,
}

impl FieldHash {
    #[inline]
    fn of(name: &[u8], value: &[u8]) -> Self {
        let name = mixed(0x9e37_79b9_7f4a_7c15 ^ name.len() as u64, name);
        // Never 0, which marks an empty slot of `seen`.
        Self { name: (name >> 32) as u32, field: (mixed(name, value) >> 32) as u32 | 1 }
    }
}

/// Hash of bytes after others. Not against an adversary: the requests are the user's own.
#[inline]
fn mixed(start: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(0xa076_1d64_78bd_642f_u64);
        (product >> 64) as u64 ^ product as u64
    };
    let mut chunks = bytes.chunks_exact(8);
    let hash = chunks
        .by_ref()
        .fold(start, |hash, chunk| step(hash, chunk.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))));
    let tail = chunks.remainder().iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte));
    step(hash, tail)
}

impl Default for HpackEncoder {
    fn default() -> Self {
        Self::new(DEFAULT_TABLE_BYTES, IndexingPolicy::default())
    }
}

impl HpackEncoder {
    /// Encoder with a table of at most `own_max_size` bytes, whatever more the peer permits.
    pub fn new(own_max_size: usize, policy: IndexingPolicy) -> Self {
        let mut encoder = Self {
            table: DynamicTable::new(DEFAULT_TABLE_BYTES),
            hashes: VecDeque::new(),
            seen: [0; SEEN_COUNT],
            policy,
            own_max_size,
            resize: None,
            is_stable: true,
            uses_huffman: true,
        };
        encoder.limit_table(DEFAULT_TABLE_BYTES);
        encoder
    }

    /// Turns Huffman codes off: longer blocks, less work for both sides.
    #[must_use]
    pub fn without_huffman(self) -> Self {
        Self { uses_huffman: false, ..self }
    }

    /// Applies the maximum size of the table that the peer has set.
    pub fn limit_table(&mut self, peer_max_size: usize) {
        let size = peer_max_size.min(self.own_max_size);
        let (smallest, last) =
            self.resize.map_or((self.table.max_size(), self.table.max_size()), |resize| (resize.smallest, resize.last));
        if size != last {
            self.resize = Some(PendingResize { smallest: smallest.min(size), last: size });
        }
    }

    /// The dynamic table.
    #[inline]
    pub fn table(&self) -> &DynamicTable {
        &self.table
    }

    /// Whether the block since [`Self::begin`] would be the same if its fields were encoded once more, as long as the
    /// table has its generation.
    #[inline]
    pub fn is_stable(&self) -> bool {
        self.is_stable
    }

    /// Whether the next block begins with a change of the table's size.
    #[inline]
    pub fn must_resize(&self) -> bool {
        self.resize.is_some()
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.is_stable = true;
        let Some(PendingResize { smallest, last }) = self.resize.take() else { return };
        self.is_stable = false;
        if smallest < last {
            self.send_resize(smallest, out);
        }
        self.send_resize(last, out);
    }

    fn send_resize(&mut self, size: usize, out: &mut Vec<u8>) {
        encode_integer(out, 0x20, 5, u32::try_from(size).unwrap_or(u32::MAX));
        self.table.resize(size);
        self.hashes.truncate(self.table.len());
    }

    /// Appends a field to the block; its name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let static_match = static_table::find(name, value);
        if let Some(StaticMatch::Field(index)) = static_match {
            return encode_integer(out, 0x80, 7, index);
        }
        let hash = FieldHash::of(name, value);
        let mut name_index = match static_match {
            Some(StaticMatch::Name(index)) => index,
            _ => 0,
        };
        let is_secret = is_secret(name, value);
        for (place, known) in self.hashes.iter().enumerate() {
            if known.name != hash.name {
                continue;
            }
            let Some((table_name, table_value)) = self.table.get(place) else { break };
            if table_name != name {
                continue;
            }
            let index = (STATIC_COUNT + place) as u32 + 1;
            if known.field == hash.field && table_value == value && !is_secret {
                return encode_integer(out, 0x80, 7, index);
            }
            if name_index == 0 {
                name_index = index;
            }
        }
        let kind = if is_secret { LiteralKind::Never } else { self.literal_kind(name, value, hash, name_index == 0) };
        self.write_literal(kind, (name, name_index), value, hash, out);
    }

    /// Appends a field as a literal of this kind, its name as an index only if the static table has it.
    pub fn literal(&mut self, kind: LiteralKind, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let name_index = match static_table::find(name, value) {
            Some(StaticMatch::Name(index) | StaticMatch::Field(index)) => index,
            None => 0,
        };
        self.write_literal(kind, (name, name_index), value, FieldHash::of(name, value), out);
    }

    fn literal_kind(&mut self, name: &[u8], value: &[u8], hash: FieldHash, is_new_name: bool) -> LiteralKind {
        // One that takes most of the table would evict what is used more.
        if field_size(name, value) > self.table.max_size() / 4 * 3 {
            return LiteralKind::Plain;
        }
        if self.policy == IndexingPolicy::All || is_new_name {
            return LiteralKind::Indexed;
        }
        let seen = &mut self.seen[hash.field as usize / 2 % SEEN_COUNT];
        if *seen == hash.field {
            return LiteralKind::Indexed;
        }
        *seen = hash.field;
        self.is_stable = false;
        LiteralKind::Plain
    }

    fn write_literal(
        &mut self,
        kind: LiteralKind,
        (name, name_index): (&[u8], u32),
        value: &[u8],
        hash: FieldHash,
        out: &mut Vec<u8>,
    ) {
        let (first, prefix) = kind.prefix();
        encode_integer(out, first, prefix, name_index);
        if name_index == 0 {
            self.write_string(name, out);
        }
        self.write_string(value, out);
        if kind == LiteralKind::Indexed {
            self.is_stable = false;
            self.table.insert(name, value);
            self.hashes.push_front(hash);
            self.hashes.truncate(self.table.len());
        }
    }

    /// Appends a string, as a Huffman code unless that is longer.
    fn write_string(&self, text: &[u8], out: &mut Vec<u8>) {
        let coded = if self.uses_huffman { huffman_length(text) } else { usize::MAX };
        if coded <= text.len() {
            encode_integer(out, 0x80, 7, u32::try_from(coded).unwrap_or(u32::MAX));
            encode_huffman(out, text);
        } else {
            encode_integer(out, 0, 7, u32::try_from(text.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(text);
        }
    }
}

/// Whether a field is a secret that could be guessed.
fn is_secret(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"authorization" | b"proxy-authorization" => true,
        b"cookie" => value.len() < MIN_INDEXED_COOKIE_BYTES,
        _ => false,
    }
}

//! Decoder of field blocks (RFC 7541 sections 3 and 6).

use super::{DEFAULT_TABLE_BYTES, DynamicTable, HpackError, STATIC_FIELDS, decode_huffman, decode_integer};

/// Maximum resizes at the start of a block: to the smallest size since the last one, and to the final one.
const MAX_RESIZES: u32 = 2;

/// Receiver of a block's fields, in order.
pub trait FieldSink {
    /// Takes a field; `is_inserted`: the dynamic table has it from now on, because of this block.
    fn field(&mut self, name: &[u8], value: &[u8], is_inserted: bool);
}

/// Effects of a block on the dynamic table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEffects {
    /// Whether it used fields of the dynamic table: its meaning depends on what came before.
    pub uses_table: bool,
    /// Whether it inserted a field.
    pub inserts: bool,
    /// Whether it changed the table's size.
    pub resizes: bool,
}

/// Decoder of the blocks of one direction of a connection.
#[derive(Debug)]
pub struct HpackDecoder {
    table: DynamicTable,
    /// Maximum size to which a block may resize the table.
    max_table_size: usize,
    /// Whether the next block has to begin with a resize, since the setting is below the table's size.
    must_resize: bool,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for HpackDecoder {
    fn default() -> Self {
        Self::new(DEFAULT_TABLE_BYTES)
    }
}

/// A string of a block: plain bytes, or a Huffman code.
#[derive(Clone, Copy)]
struct StringLiteral<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl<'a> StringLiteral<'a> {
    /// Reads the string at the start of `rest`, and moves `rest` behind it.
    #[inline]
    fn read(rest: &mut &'a [u8]) -> Result<Self, HpackError> {
        let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
        let (length, used) = decode_integer(rest, 7)?;
        let behind = &rest[used..];
        let (bytes, after) = behind.split_at_checked(length as usize).ok_or(HpackError::Truncated)?;
        *rest = after;
        Ok(Self { bytes, is_huffman })
    }

    /// The text of the string: itself, or in `scratch`.
    #[inline]
    fn text<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], HpackError>
    where
        'a: 's,
    {
        if !self.is_huffman {
            return Ok(self.bytes);
        }
        scratch.clear();
        decode_huffman(scratch, self.bytes)?;
        Ok(scratch)
    }
}

impl HpackDecoder {
    /// Decoder whose table may have at most this size, in bytes.
    pub fn new(max_table_size: usize) -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE_BYTES),
            // Until the peer acknowledges a smaller size, it may use the default one.
            max_table_size: max_table_size.max(DEFAULT_TABLE_BYTES),
            must_resize: false,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Sets the maximum size of the table, which the peer has acknowledged (RFC 7541 section 4.2).
    pub fn limit_table(&mut self, max_table_size: usize) {
        self.max_table_size = max_table_size;
        self.must_resize = self.table.max_size() > max_table_size;
    }

    /// The dynamic table.
    #[inline]
    pub fn table(&self) -> &DynamicTable {
        &self.table
    }

    /// Whether a block's effects may be repeated without decoding it: nothing is due at its start.
    #[inline]
    pub fn can_repeat(&self) -> bool {
        !self.must_resize
    }

    /// Inserts a field as a block does that is known already.
    #[inline]
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.table.insert(name, value);
    }

    /// Decodes a block, and passes its fields on.
    ///
    /// # Errors
    /// If the block is invalid; the decoder is unusable then.
    pub fn decode(&mut self, block: &[u8], sink: &mut impl FieldSink) -> Result<BlockEffects, HpackError> {
        let mut effects = BlockEffects::default();
        let mut rest = self.resize(block, &mut effects)?;
        while let Some(first) = rest.first() {
            match first {
                0x80.. => {
                    let (index, used) = decode_integer(rest, 7)?;
                    rest = &rest[used..];
                    effects.uses_table |= index as usize > STATIC_FIELDS.len();
                    let (name, value) = lookup(&self.table, index)?;
                    sink.field(name, value, false);
                }
                0x40.. => self.literal(&mut rest, 6, true, sink, &mut effects)?,
                0x20.. => return Err(HpackError::MisplacedResize),
                _ => self.literal(&mut rest, 4, false, sink, &mut effects)?,
            }
        }
        Ok(effects)
    }

    /// Carries out the resizes at the start of a block; returns what follows them.
    fn resize<'a>(&mut self, block: &'a [u8], effects: &mut BlockEffects) -> Result<&'a [u8], HpackError> {
        let mut rest = block;
        let mut count = 0;
        while let Some(0x20..=0x3f) = rest.first() {
            let (size, used) = decode_integer(rest, 5)?;
            rest = &rest[used..];
            count += 1;
            if count > MAX_RESIZES {
                return Err(HpackError::MisplacedResize);
            }
            if size as usize > self.max_table_size {
                return Err(HpackError::TableTooLarge);
            }
            self.table.resize(size as usize);
            (self.must_resize, effects.resizes) = (false, true);
        }
        if self.must_resize { Err(HpackError::MisplacedResize) } else { Ok(rest) }
    }

    fn literal(
        &mut self,
        rest: &mut &[u8],
        prefix: u32,
        is_inserted: bool,
        sink: &mut impl FieldSink,
        effects: &mut BlockEffects,
    ) -> Result<(), HpackError> {
        let (index, used) = decode_integer(rest, prefix)?;
        *rest = &rest[used..];
        let name = if index == 0 {
            StringLiteral::read(rest)?.text(&mut self.name)?
        } else if let Some((name, _)) = STATIC_FIELDS.get(index as usize - 1) {
            name.as_bytes()
        } else {
            effects.uses_table = true;
            // An insertion may evict the field that has the name.
            let (name, _) = lookup(&self.table, index)?;
            self.name.clear();
            self.name.extend_from_slice(name);
            &self.name
        };
        let value = StringLiteral::read(rest)?.text(&mut self.value)?;
        sink.field(name, value, is_inserted);
        if is_inserted {
            effects.inserts = true;
            self.table.insert(name, value);
        }
        Ok(())
    }
}

/// Field at an index of both tables together.
#[inline]
fn lookup(table: &DynamicTable, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
    let place = (index as usize).checked_sub(1).ok_or(HpackError::InvalidIndex)?;
    match STATIC_FIELDS.get(place) {
        Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
        None => table.get(place - STATIC_FIELDS.len()).ok_or(HpackError::InvalidIndex),
    }
}

//! Decoder of a connection's responses, and its cache of blocks.

use super::ResponseFields;
use super::block_reader::{BlockReader, InsertedFields};
use crate::hpack::{HpackDecoder, HpackError};

/// Blocks that are kept.
const MAX_CACHED_BLOCKS: usize = 4;
/// Maximum size of a block that is kept, and of the fields that it inserts, in bytes.
const MAX_CACHED_BLOCK_BYTES: usize = 2048;

/// Decoder of a connection's field blocks.
///
/// A service under load sends the same block again and again. There are two kinds that need not be decoded again: one
/// that uses the table and does not insert, while the table is the same; and one that inserts and does not use the
/// table, whose insertions are repeated (nginx sends only these).
#[derive(Debug)]
pub struct ResponseDecoder {
    decoder: HpackDecoder,
    /// Maximum size of a message's fields, in bytes, with 32 for each.
    max_fields_size: usize,
    cached: Vec<CachedBlock>,
    /// The cached block to be replaced next.
    oldest: usize,
    text: Vec<u8>,
    text_place: TextPlace,
    inserted: InsertedFields,
}

/// A block and what it means.
#[derive(Debug, Default)]
struct CachedBlock {
    block: Vec<u8>,
    fields: ResponseFields,
    text: Vec<u8>,
    inserted: InsertedFields,
    /// Generation of the table under which it holds; `None` if it does not use the table.
    generation: Option<u64>,
}

/// Place of the last head's text.
#[derive(Clone, Copy, Debug)]
enum TextPlace {
    Own,
    Cached(usize),
}

impl ResponseDecoder {
    /// Decoder with this table; messages whose fields are larger than `max_fields_size` are violations.
    pub fn new(decoder: HpackDecoder, max_fields_size: usize) -> Self {
        Self {
            decoder,
            max_fields_size,
            cached: Vec::new(),
            oldest: 0,
            text: Vec::new(),
            text_place: TextPlace::Own,
            inserted: InsertedFields::default(),
        }
    }

    /// Sets the maximum size of the table, which the peer has acknowledged, in bytes.
    pub fn limit_table(&mut self, max_size: usize) {
        self.decoder.limit_table(max_size);
    }

    /// The last head that was wanted as text: `HTTP/2 200`, lines `name: value`, an empty line.
    pub fn text(&self) -> &[u8] {
        match self.text_place {
            TextPlace::Own => &self.text,
            TextPlace::Cached(index) => self.cached.get(index).map_or(&[], |cached| &cached.text),
        }
    }

    /// Decodes a block; `wants_text`: [`Self::text`] is to have it.
    ///
    /// # Errors
    /// If the block does not decode; the connection is unusable then.
    #[inline]
    pub fn decode(&mut self, block: &[u8], wants_text: bool) -> Result<ResponseFields, HpackError> {
        let generation = self.decoder.table().generation();
        let found = self.cached.iter().position(|cached| {
            cached.block == block
                && cached.generation.is_none_or(|valid| valid == generation)
                && (!wants_text || !cached.text.is_empty())
        });
        if let Some(index) = found
            && self.decoder.can_repeat()
        {
            let cached = &self.cached[index];
            cached.inserted.each(|name, value| self.decoder.insert(name, value));
            self.text_place = TextPlace::Cached(index);
            return Ok(cached.fields);
        }
        self.decode_anew(block, wants_text)
    }

    fn decode_anew(&mut self, block: &[u8], wants_text: bool) -> Result<ResponseFields, HpackError> {
        self.text.clear();
        self.inserted.clear();
        self.text_place = TextPlace::Own;
        let mut reader = BlockReader {
            fields: ResponseFields::default(),
            text: wants_text.then_some(&mut self.text),
            inserted: &mut self.inserted,
            left: self.max_fields_size,
            insertable: MAX_CACHED_BLOCK_BYTES,
            has_regular: false,
        };
        let effects = self.decoder.decode(block, &mut reader)?;
        let fields = reader.fields;
        if wants_text {
            self.text.extend_from_slice(b"\r\n");
        }
        let is_repeatable = !(effects.resizes || effects.uses_table && effects.inserts);
        let is_small = block.len() <= MAX_CACHED_BLOCK_BYTES && self.inserted.byte_count() <= MAX_CACHED_BLOCK_BYTES;
        if is_repeatable && is_small && !block.is_empty() && fields.violation.is_none() {
            self.keep(block, fields, effects.uses_table);
        }
        Ok(fields)
    }

    fn keep(&mut self, block: &[u8], fields: ResponseFields, uses_table: bool) {
        if self.cached.len() < MAX_CACHED_BLOCKS {
            self.oldest = self.cached.len();
            self.cached.push(CachedBlock::default());
        }
        let cached = &mut self.cached[self.oldest];
        self.oldest = (self.oldest + 1) % MAX_CACHED_BLOCKS;
        cached.block.clear();
        cached.block.extend_from_slice(block);
        cached.text.clear();
        cached.text.extend_from_slice(&self.text);
        cached.inserted.copy_from(&self.inserted);
        cached.fields = fields;
        cached.generation = uses_table.then(|| self.decoder.table().generation());
    }
}

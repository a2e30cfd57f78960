//! Representations of a field that is not only an index (RFC 7541 section 6.2).

/// Treatment of a literal field by tables: inserted, left out, or never to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Inserted into the dynamic table.
    Indexed,
    /// Not inserted.
    Plain,
    /// Not inserted, nor by any intermediary behind: a secret that is short enough to be guessed.
    Never,
}

impl LiteralKind {
    /// Bits of its first byte above the index, and the number of bits for the index.
    pub(super) const fn prefix(self) -> (u8, u32) {
        match self {
            Self::Indexed => (0x40, 6),
            Self::Plain => (0x00, 4),
            Self::Never => (0x10, 4),
        }
    }
}

//! Pieces in which a stream of bytes arrives.

use std::iter;

/// Cuts the stream into pieces of these sizes, over and over.
pub(crate) fn pieces<'a>(stream: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    iter::from_fn(move || {
        let size = usize::from(*sizes.next()?).max(1).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

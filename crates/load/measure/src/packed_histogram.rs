//! Histograms of points of a series as their own bytes, which are a hundredth of their memory.

use weir_histogram::Histogram;

/// Histogram from its own bytes; empty bytes are an empty histogram.
pub(super) fn unpacked(bytes: &[u8]) -> Histogram {
    Histogram::from_bytes(bytes).unwrap_or_else(|_| Histogram::coarse())
}

/// Bytes of the sum of a histogram in its own bytes and another one.
pub(super) fn packed_sum(packed: &[u8], more: &Histogram) -> Vec<u8> {
    let mut histogram = unpacked(packed);
    histogram.add(more);
    let mut bytes = histogram.to_bytes();
    bytes.shrink_to_fit();
    bytes
}

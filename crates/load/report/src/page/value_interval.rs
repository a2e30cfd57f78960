//! Intervals round values.

/// Interval in which a value lies, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

//! Histograms of times in constant memory, and their percentiles.
//!
//! - [`histogram`]: times in fixed memory, merged without loss
//! - [`percentiles`]: figures of a histogram, as reports have them

pub mod histogram;
pub mod percentiles;

pub use self::histogram::Histogram;

//! Selection of the records that a replay sends, and reasons for leaving out others.

use super::access_record::AccessRecord;
use super::record_filter::RecordFilter;

/// Reason why a line is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineOmission {
    /// The line is not of the format.
    Broken,
    /// The line is longer than the maximum.
    TooLong,
    /// The line has no request of HTTP.
    NoRequest,
    /// The method may change data, and that was not allowed.
    UnsafeMethod,
    /// A condition is not fulfilled.
    Filtered,
    /// The request is before or after the part that is wanted.
    OutsideTime,
    /// Later lines are so much older that the sorting window has passed it.
    OutOfOrder,
}

impl LineOmission {
    /// All reasons, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Broken,
        Self::TooLong,
        Self::NoRequest,
        Self::UnsafeMethod,
        Self::Filtered,
        Self::OutsideTime,
        Self::OutOfOrder,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::TooLong => "too_long",
            Self::NoRequest => "no_request",
            Self::UnsafeMethod => "unsafe_method",
            Self::Filtered => "filtered",
            Self::OutsideTime => "outside_time",
            Self::OutOfOrder => "out_of_order",
        }
    }

    /// Reason for a person.
    pub fn description(self) -> &'static str {
        match self {
            Self::Broken => "broken lines",
            Self::TooLong => "lines longer than 1 MiB",
            Self::NoRequest => "without an HTTP request",
            Self::UnsafeMethod => "methods that may change data; --unsafe sends them",
            Self::Filtered => "by --filter",
            Self::OutsideTime => "outside --from and --to",
            Self::OutOfOrder => "too far out of order; sort the log by time",
        }
    }
}

/// Criteria of the records that a replay sends.
#[derive(Clone, Debug, Default)]
pub struct RecordSelection {
    /// Conditions, all of which must hold.
    pub filters: Vec<RecordFilter>,
    /// Whether methods that may change data are allowed.
    pub allows_unsafe: bool,
}

impl RecordSelection {
    /// Checks a record.
    ///
    /// # Errors
    /// Why it is left out.
    pub fn check(&self, record: &AccessRecord) -> Result<(), LineOmission> {
        if !self.filters.iter().all(|filter| filter.accepts(record)) {
            return Err(LineOmission::Filtered);
        }
        if !self.allows_unsafe && !record.is_safe() { Err(LineOmission::UnsafeMethod) } else { Ok(()) }
    }
}

//! Counts of responses by status, and by the length of their bodies.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use weir_base::failure::FailureKind;
use weir_base::grpc_status::{GRPC_STATUS_NAMES, is_success_status};

use super::merge::{AddPart, PeerValue, merged};
use super::outcome::RequestEnd;

/// Number of responses by status, from 0 to 999.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64; 1000]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(Box::new([0; 1000]))
    }
}

impl StatusCounts {
    /// Counts a response; a status above 999 counts as 999.
    #[inline]
    pub fn record(&mut self, status: u16) {
        self.0[usize::from(status.min(999))] += 1;
    }

    /// Takes away an earlier state of the same counts.
    pub(super) fn subtract(&mut self, earlier: &Self) {
        self.0.iter_mut().zip(earlier.0.iter()).for_each(|(all, before)| *all -= before);
    }

    /// Number of responses with a status in this range.
    pub fn sum(&self, range: Range<usize>) -> u64 {
        self.0[range].iter().sum()
    }

    /// Statuses that occurred, and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.0.iter().copied()).filter(|(_, n)| *n > 0)
    }
}

impl AddPart for StatusCounts {
    fn add_part(&mut self, other: &Self) {
        self.0.add_part(&other.0);
    }
}

impl PeerValue for StatusCounts {
    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

/// By status; zero counts are omitted.
impl Serialize for StatusCounts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (status, n) in BTreeMap::<u16, u64>::deserialize(from)? {
            let count = counts.0.get_mut(usize::from(status));
            *count.ok_or_else(|| de::Error::custom(format_args!("invalid status {status}")))? = n;
        }
        Ok(counts)
    }
}

merged! {
    /// Responses to steps of scenarios whose success is not that of their status.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CheckedResponses {
        /// Responses with a status of success that failed a check or capture.
        pub failed: u64 => sum,
        /// Responses of class 4xx that their step expects.
        pub expected_4xx: u64 => sum,
        /// Responses with a status of 500 and above that their step expects.
        pub expected_5xx: u64 => sum,
        /// Responses that their step expects, by their status of gRPC.
        #[serde(default)]
        pub expected_grpc: [u64; GRPC_STATUS_NAMES.len()] => sum,
    }
}

impl CheckedResponses {
    /// Counts the end of a request.
    #[inline]
    pub fn record(&mut self, end: RequestEnd) {
        match end {
            RequestEnd::Checked { status, passed: false } if is_success_status(status) => self.failed += 1,
            RequestEnd::Checked { status: 400..500, passed: true } => self.expected_4xx += 1,
            RequestEnd::Checked { status: 500.., passed: true } => self.expected_5xx += 1,
            RequestEnd::Checked { status, passed: true } => {
                self.expected_grpc.get_mut(usize::from(status)).into_iter().for_each(|count| *count += 1);
            }
            _ => {}
        }
    }
}

impl AddPart for CheckedResponses {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for CheckedResponses {
    fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}

/// Body length of the first response, and number of responses that have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyLengths {
    /// Body length of the first response, in bytes.
    pub first: Option<u64>,
    /// Number of responses with this length.
    pub same: u64,
}

impl BodyLengths {
    /// Counts a response with a body of `length` bytes.
    #[inline]
    pub fn record(&mut self, length: u64) {
        self.same += u64::from(*self.first.get_or_insert(length) == length);
    }
}

impl AddPart for BodyLengths {
    fn add_part(&mut self, other: &Self) {
        if self.first.is_none() {
            *self = *other;
        } else if self.first == other.first {
            self.same += other.same;
        }
    }
}

impl PeerValue for BodyLengths {
    fn check(&self) -> Result<(), String> {
        self.same.check()
    }
}

/// Failed requests by kind; zero counts are left out.
pub(super) fn failed_by_kind(
    failures: &[u64; FailureKind::ALL.len()],
    statuses: &StatusCounts,
    checked: CheckedResponses,
    dropped: u64,
) -> BTreeMap<String, u64> {
    // Behind OK.
    let grpc = GRPC_STATUS_NAMES.iter().enumerate().skip(1);
    let grpc =
        grpc.map(|(code, name)| (*name, statuses.sum(code..code + 1).saturating_sub(checked.expected_grpc[code])));
    FailureKind::ALL
        .iter()
        .map(|kind| (kind.name(), failures[*kind as usize]))
        .chain([
            ("4xx", statuses.sum(400..500).saturating_sub(checked.expected_4xx)),
            ("5xx", statuses.sum(500..1000).saturating_sub(checked.expected_5xx)),
            ("check", checked.failed),
            ("dropped", dropped),
        ])
        .chain(grpc)
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| (name.to_owned(), n))
        .collect()
}

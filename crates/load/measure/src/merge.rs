//! Records of counters that are merged from parts: of threads, agents and intervals.
//!
//! A counter has one declaration, in [`merged!`]: its name, type, and the rule by which two parts become one. Merging
//! and the check of a record that a peer sent follow from it.

use std::collections::BTreeMap;
use weir_base::failure::FailureKind;

use weir_base::Nanos;
use weir_histogram::Histogram;

/// Maximum of a count: above any count of a run, and small enough that a million of them does not overflow.
const MAX_COUNT: u64 = 1 << 43;
/// Maximum number of records of a list from a peer.
const MAX_PARTS: usize = 100_000;
/// Maximum length of a text from a peer, in characters.
const MAX_TEXT_CHARS: usize = 1000;

/// Declares a record, `field: type => rule` for each counter; the rules are functions of this module.
macro_rules! merged {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[$field_attribute:meta])* pub $field:ident: $type:ty => $rule:ident,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$field_attribute])* pub $field: $type,)*
        }

        impl $name {
            /// Adds another part.
            pub fn add(&mut self, other: &Self) {
                $($crate::merge::$rule(&mut self.$field, &other.$field);)*
            }

            /// Checks each value by itself; the error names the first impossible one.
            fn check_values(&self) -> Result<(), String> {
                $($crate::merge::PeerValue::check(&self.$field)
                    .map_err(|why| format!("{}: {why}", stringify!($field)))?;)*
                Ok(())
            }
        }
    };
}
pub(super) use merged;

/// Value that adds up over parts.
pub(super) trait AddPart {
    fn add_part(&mut self, other: &Self);
}

/// Value that a peer may send.
pub(super) trait PeerValue {
    /// Whether the value is possible, and small enough to be added up.
    fn check(&self) -> Result<(), String>;
}

/// Record of an index; the list grows up to it.
pub(super) fn at<T: Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

/// Rule: sum of the parts.
pub(super) fn sum<T: AddPart>(own: &mut T, other: &T) {
    own.add_part(other);
}

/// Rule: maximum of the parts.
pub(super) fn maximum<T: PartialOrd + Copy>(own: &mut T, other: &T) {
    if *other > *own {
        *own = *other;
    }
}

/// Rule: lower one of two limits, of which 0 is none.
pub(super) fn lowest(own: &mut u64, other: &u64) {
    if *other != 0 && (*own == 0 || *other < *own) {
        *own = *other;
    }
}

/// Rule: value of the first part that has one.
pub(super) fn first<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
    if own.is_none() {
        own.clone_from(other);
    }
}

/// Values of which a record holds the first few of all parts.
pub(super) trait FirstFew: Clone {
    /// Maximum number in a record.
    const MAX_COUNT: usize;
}

/// Rule: first values of all parts.
pub(super) fn first_few<T: FirstFew>(own: &mut Vec<T>, other: &[T]) {
    let free = T::MAX_COUNT.saturating_sub(own.len());
    own.extend(other.iter().take(free).cloned());
}

/// Rule: for each key, value of the first part that has one.
pub(super) fn first_of_each<K: Ord + Clone, V: Clone>(own: &mut BTreeMap<K, V>, other: &BTreeMap<K, V>) {
    for (key, value) in other {
        own.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

impl AddPart for u64 {
    fn add_part(&mut self, other: &Self) {
        *self += other;
    }
}

impl PeerValue for u64 {
    fn check(&self) -> Result<(), String> {
        if *self > MAX_COUNT { Err(format!("invalid count {self}")) } else { Ok(()) }
    }
}

impl<const N: usize> AddPart for [u64; N] {
    fn add_part(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(own, other)| *own += other);
    }
}

impl<const N: usize> PeerValue for [u64; N] {
    fn check(&self) -> Result<(), String> {
        self.iter().try_for_each(PeerValue::check)
    }
}

impl AddPart for f64 {
    fn add_part(&mut self, other: &Self) {
        *self += other;
    }
}

impl PeerValue for f64 {
    fn check(&self) -> Result<(), String> {
        if self.is_finite() { Ok(()) } else { Err(format!("invalid number {self}")) }
    }
}

impl AddPart for Nanos {
    fn add_part(&mut self, other: &Self) {
        *self += *other;
    }
}

impl PeerValue for Nanos {
    fn check(&self) -> Result<(), String> {
        // Sums of times saturate.
        Ok(())
    }
}

impl AddPart for Histogram {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for Histogram {
    fn check(&self) -> Result<(), String> {
        self.count().check()
    }
}

/// Parts of the same index add up.
impl<T: AddPart + Clone> AddPart for Vec<T> {
    fn add_part(&mut self, other: &Self) {
        for (own, other) in self.iter_mut().zip(other) {
            own.add_part(other);
        }
        let own = self.len();
        self.extend(other.iter().skip(own).cloned());
    }
}

impl<T: PeerValue> PeerValue for Vec<T> {
    fn check(&self) -> Result<(), String> {
        if self.len() > MAX_PARTS {
            return Err(format!("{} parts", self.len()));
        }
        self.iter().try_for_each(PeerValue::check)
    }
}

impl<T: AddPart + Clone> AddPart for Option<Box<T>> {
    fn add_part(&mut self, other: &Self) {
        match (self, other) {
            (Some(own), Some(other)) => own.add_part(other),
            (own, Some(_)) => own.clone_from(other),
            (_, None) => {}
        }
    }
}

impl<T: PeerValue> PeerValue for Option<Box<T>> {
    fn check(&self) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |value| value.check())
    }
}

impl PeerValue for String {
    fn check(&self) -> Result<(), String> {
        if self.chars().nth(MAX_TEXT_CHARS).is_some() { Err("text too long".into()) } else { Ok(()) }
    }
}

impl PeerValue for Option<String> {
    fn check(&self) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), PeerValue::check)
    }
}

impl PeerValue for BTreeMap<FailureKind, String> {
    fn check(&self) -> Result<(), String> {
        self.values().try_for_each(PeerValue::check)
    }
}

/// Texts by status.
impl PeerValue for BTreeMap<u16, String> {
    fn check(&self) -> Result<(), String> {
        if self.len() > MAX_PARTS {
            return Err(format!("{} texts", self.len()));
        }
        self.values().try_for_each(PeerValue::check)
    }
}

/// Texts as a peer accepts them: cut after the maximum length.
pub(super) mod texts {
    use std::collections::BTreeMap;

    use serde::{Serialize, Serializer};

    fn truncated(text: &str) -> String {
        text.chars().take(super::MAX_TEXT_CHARS).collect()
    }

    /// Serialises an optional text.
    pub(crate) fn serialize_one<S: Serializer>(text: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().map(truncated).serialize(to)
    }

    /// Serialises a text.
    pub(crate) fn serialize_text<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&truncated(text))
    }

    /// Serialises texts by key.
    pub(crate) fn serialize_each<K: Serialize, S: Serializer>(
        texts: &BTreeMap<K, String>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(texts.iter().map(|(key, text)| (key, truncated(text))))
    }
}

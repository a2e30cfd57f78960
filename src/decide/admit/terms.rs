//! What can be set of admission, and whether it makes sense.

use super::limit;
use crate::decide::Nanos;

/// What can be set; the defaults need no tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The limit of those in flight.
    pub limit: LimitTerms,
    /// The longest wait for a place while there is no overload; it is less where answers take less. With
    /// [`Nanos::NEVER`] nobody is judged by how long it waits, and who came first is always first.
    pub patience: Nanos,
    /// The longest wait while there is.
    pub haste: Nanos,
    /// How many may wait at most.
    pub queue: u32,
}

/// How many may be in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitTerms {
    /// So many, always.
    Fixed(u32),
    /// It is found out.
    Adaptive(limit::Options),
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            limit: LimitTerms::Adaptive(limit::Options::default()),
            patience: Nanos::from_secs(1),
            haste: Nanos::from_millis(5),
            queue: 1000,
        }
    }
}

impl Terms {
    /// What is wrong with them, and the remedy.
    pub fn fault(&self) -> Option<(String, String)> {
        let limit = match &self.limit {
            LimitTerms::Fixed(0) => Some(("a limit of 0 lets nobody in".into(), "make it 1 at least".into())),
            LimitTerms::Fixed(_) => None,
            LimitTerms::Adaptive(options) => options.fault(),
        };
        limit.or_else(|| {
            let Self { patience, haste, .. } = self;
            let what = format!("{haste} of waiting under overload is longer than the {patience} without");
            (haste > patience).then(|| (what, format!("make it {patience} at most, e.g. 5ms")))
        })
    }
}

impl limit::Options {
    /// What is wrong with them, and the remedy.
    pub fn fault(&self) -> Option<(String, String)> {
        let Self { initial, min, max } = self;
        if *min == 0 {
            Some(("a least limit of 0 lets nobody in".into(), "make it 1 at least".into()))
        } else if min > max {
            Some((format!("a least limit of {min} is above the most, {max}"), format!("make it {max} at most")))
        } else if !(min..=max).contains(&initial) {
            let what = format!("a first limit of {initial} is not between the least, {min}, and the most, {max}");
            Some((what, format!("make it {}", initial.clamp(min, max))))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: impl FnOnce(&mut Terms)) -> Option<String> {
        let mut terms = Terms::default();
        change(&mut terms);
        terms.fault().map(|(what, _)| what)
    }

    fn adaptive(initial: u32, min: u32, max: u32) -> Option<String> {
        fault(|terms| terms.limit = LimitTerms::Adaptive(limit::Options { initial, min, max }))
    }

    #[test]
    fn terms_that_make_sense_have_no_fault() {
        assert_eq!(fault(|_| ()), None);
        assert_eq!(fault(|terms| terms.limit = LimitTerms::Fixed(1)), None);
        assert_eq!(fault(|terms| terms.patience = Nanos::NEVER), None);
        assert_eq!(adaptive(5, 5, 5), None);
    }

    #[test]
    fn a_limit_that_lets_nobody_in_is_a_fault() {
        assert_eq!(fault(|terms| terms.limit = LimitTerms::Fixed(0)).as_deref(), Some("a limit of 0 lets nobody in"));
        assert_eq!(adaptive(1, 0, 9).as_deref(), Some("a least limit of 0 lets nobody in"));
    }

    #[test]
    fn terms_that_contradict_each_other_are_a_fault() {
        assert_eq!(adaptive(5, 9, 8).as_deref(), Some("a least limit of 9 is above the most, 8"));
        let first = "a first limit of 1000 is not between the least, 1, and the most, 500";
        assert_eq!(adaptive(1000, 1, 500).as_deref(), Some(first));
        let longer = fault(|terms| terms.patience = Nanos::from_millis(1));
        assert_eq!(longer.as_deref(), Some("5ms of waiting under overload is longer than the 1ms without"));
    }
}

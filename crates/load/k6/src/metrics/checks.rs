//! Checks by their names, in the groups that they were made in.

use std::collections::HashMap;

/// Results of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckOutcomes {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// A check with its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// Group, with two colons before each name; empty for none.
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) counts: CheckOutcomes,
}

/// Most checks of a script: their names may come from responses.
const MAX_CHECKS: usize = 1000;
/// Name of those beyond it.
const OTHERS: &str = "(others)";

/// Checks in the order of their first results.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckTable {
    results: Vec<CheckResult>,
    /// Places by groups and names.
    places: HashMap<String, HashMap<String, usize>>,
}

impl CheckTable {
    /// Adds results of a check.
    pub(crate) fn add(&mut self, group: &str, name: &str, counts: CheckOutcomes) {
        let known = self.places.get(group).and_then(|names| names.get(name)).copied();
        let place = known.unwrap_or_else(|| self.place_for(group, name));
        let own = &mut self.results[place].counts;
        own.passed += counts.passed;
        own.failed += counts.failed;
    }

    fn place_for(&mut self, group: &str, name: &str) -> usize {
        let (group, name) = if self.results.len() >= MAX_CHECKS { ("", OTHERS) } else { (group, name) };
        let names = self.places.entry(group.to_owned()).or_default();
        let next = self.results.len();
        let place = *names.entry(name.to_owned()).or_insert(next);
        if place == next {
            self.results.push(CheckResult { group: group.to_owned(), name: name.to_owned(), ..CheckResult::default() });
        }
        place
    }

    /// Results in the order of their first ones.
    pub(crate) fn results(&self) -> &[CheckResult] {
        &self.results
    }

    /// Adds the results of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.results.iter().for_each(|result| self.add(&result.group, &result.name, result.counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_by_group_and_name_and_bounded() {
        let mut table = CheckTable::default();
        let passed = CheckOutcomes { passed: 1, failed: 0 };
        table.add("::a", "ok", passed);
        table.add("", "ok", passed);
        table.add("::a", "ok", CheckOutcomes { passed: 0, failed: 2 });
        assert_eq!(table.results()[0].counts, CheckOutcomes { passed: 1, failed: 2 });
        for number in 0..2 * MAX_CHECKS {
            table.add("", &number.to_string(), passed);
        }
        assert_eq!(table.results().len(), MAX_CHECKS + 1);
        assert_eq!(table.results().iter().map(|result| result.counts.passed).sum::<u64>(), 2 + 2 * MAX_CHECKS as u64);
    }
}

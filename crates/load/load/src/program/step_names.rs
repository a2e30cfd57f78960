//! Names of steps that are known only at run time.

use std::collections::HashMap;
use std::sync::Mutex;

use weir_machine::lock::lock;
use weir_measure::run_steps::StepFacts;

/// Names of steps that are known only at run time, shared by the threads of a program. A thread asks once for each
/// name and keeps the index.
#[derive(Debug, Default)]
pub struct StepNames(Mutex<NamedSteps>);

#[derive(Debug, Default)]
struct NamedSteps {
    facts: Vec<StepFacts>,
    indices: HashMap<(String, String), u32>,
}

/// Maximum number of steps of a program: each has histograms of its own, on each thread. Further names share the last
/// one.
const MAX_STEPS: usize = 1000;
/// Name of the step that has all names beyond the maximum.
const OTHER_STEPS: &str = "(others)";

impl StepNames {
    /// Maximum number of steps of a program.
    pub const MAX_COUNT: usize = MAX_STEPS;

    /// Index of a step of a scenario, which is added if it is new.
    pub fn index(&self, scenario: &str, step: &str) -> u32 {
        let mut names = lock(&self.0);
        if let Some(index) = names.indices.get(&(scenario.to_owned(), step.to_owned())) {
            return *index;
        }
        let count = names.facts.len();
        if count >= MAX_STEPS {
            return u32::try_from(count - 1).unwrap_or(u32::MAX);
        }
        let name = if count + 1 == MAX_STEPS { OTHER_STEPS } else { step };
        let index = u32::try_from(count).unwrap_or(u32::MAX);
        names.facts.push(StepFacts { name: name.to_owned(), scenario: scenario.to_owned(), checks: Vec::new() });
        names.indices.insert((scenario.to_owned(), step.to_owned()), index);
        index
    }

    /// Steps so far, in the order of their indices.
    pub fn facts(&self) -> Vec<StepFacts> {
        lock(&self.0).facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_index_and_names_beyond_the_maximum_share_the_last_one() {
        let names = StepNames::default();
        assert_eq!((names.index("a", "x"), names.index("b", "x"), names.index("a", "x")), (0, 1, 0));
        let last = (0..2 * MAX_STEPS).map(|n| names.index("a", &n.to_string())).max();
        assert_eq!(last, Some(999));
        assert_eq!(names.facts().len(), MAX_STEPS);
        assert_eq!(names.facts()[999].name, OTHER_STEPS);
        assert_eq!(names.index("a", "x"), 0);
    }
}

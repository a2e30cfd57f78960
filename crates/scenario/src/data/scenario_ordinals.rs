//! Ordinals of iterations within their scenarios.

use weir_decide::load::source::RequestSource;

/// Ordinal of an iteration among those of its scenario, where each iteration's scenario is a random choice.
///
/// The choice is a function of the number of an iteration alone, so every thread counts the iterations of the others
/// too, and nobody needs to be asked. Numbers that only grow cost one draw for each number passed.
#[derive(Clone, Debug, Default)]
pub struct ScenarioOrdinals {
    /// First number that is not counted.
    next: u64,
    /// Iterations of each scenario among the numbers before it.
    counts: Vec<u64>,
}

impl ScenarioOrdinals {
    /// Scenario of iteration `number`, and how many iterations with lower numbers have the same one.
    pub fn of(&mut self, choice: &RequestSource, number: u64) -> (usize, u64) {
        if number < self.next {
            *self = Self::default();
        }
        while self.next < number {
            *self.count(choice.pick(self.next)) += 1;
            self.next += 1;
        }
        let scenario = choice.pick(number);
        (scenario, *self.count(scenario))
    }

    fn count(&mut self, scenario: usize) -> &mut u64 {
        if self.counts.len() <= scenario {
            self.counts.resize(scenario + 1, 0);
        }
        &mut self.counts[scenario]
    }
}

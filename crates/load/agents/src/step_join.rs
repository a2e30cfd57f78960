//! Steps of scripts, which each agent numbers by itself, joined by their names.

use weir_load::program::StepNames;
use weir_measure::recorder::Interval;
use weir_measure::run_steps::{RunStep, StepFacts};
use weir_measure::step_counts::{StepCounts, StepInterval};

use super::protocol::ScriptStep;

/// Steps of scripts, which each agent numbers by itself in the order of their first requests, joined by their names.
/// Agents without names number steps alike: those of compiled scenarios.
#[derive(Debug)]
pub(crate) struct StepJoin {
    names: StepNames,
    /// Joint steps in the order of their indices.
    facts: Vec<StepFacts>,
    /// Joint indices of the steps of each agent.
    indices: Vec<Vec<u32>>,
}

impl StepJoin {
    /// Join of the steps of this number of agents.
    pub(crate) fn new(agents: usize) -> Self {
        Self { names: StepNames::default(), facts: Vec::new(), indices: vec![Vec::new(); agents] }
    }

    /// Takes the next steps of an agent.
    ///
    /// # Errors
    /// One line, if they are more than a program may have.
    pub(crate) fn name(&mut self, agent: usize, steps: &[ScriptStep]) -> Result<(), String> {
        let Some(indices) = self.indices.get_mut(agent) else { return Ok(()) };
        if indices.len() + steps.len() > StepNames::MAX_COUNT {
            return Err(format!("more than {} steps", StepNames::MAX_COUNT));
        }
        indices.extend(steps.iter().map(|step| self.names.index(&step.scenario, &step.name)));
        self.facts = self.names.facts();
        Ok(())
    }

    /// Gives the steps of an agent's interval their joint indices.
    ///
    /// # Errors
    /// One line, if a step has no name.
    pub(crate) fn join(&self, agent: usize, interval: &mut Interval) -> Result<(), String> {
        let steps = std::mem::take(&mut interval.steps);
        interval.steps = self.joined(agent, steps, StepInterval::add)?;
        if let Some(counts) = &mut interval.counts {
            self.join_counts(agent, &mut counts.steps)?;
        }
        Ok(())
    }

    /// Gives the counts of an agent's steps their joint indices.
    ///
    /// # Errors
    /// One line, if a step has no name.
    pub(crate) fn join_counts(&self, agent: usize, steps: &mut Vec<StepCounts>) -> Result<(), String> {
        *steps = self.joined(agent, std::mem::take(steps), StepCounts::add)?;
        Ok(())
    }

    fn joined<T: Default>(&self, agent: usize, steps: Vec<T>, add: impl Fn(&mut T, &T)) -> Result<Vec<T>, String> {
        let indices = self.indices.get(agent).map(Vec::as_slice).unwrap_or_default();
        if indices.is_empty() {
            return Ok(steps);
        }
        let indices = indices.get(..steps.len()).ok_or_else(|| format!("{} steps without names", steps.len()))?;
        let count = indices.iter().max().map_or(0, |last| *last as usize + 1);
        let mut joined: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
        for (index, step) in indices.iter().zip(steps) {
            match &mut joined[*index as usize] {
                // Names beyond the maximum share a step.
                Some(known) => add(known, &step),
                free => *free = Some(step),
            }
        }
        Ok(joined.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Joint steps in the order of their indices; empty without names.
    pub(crate) fn facts(&self) -> &[StepFacts] {
        &self.facts
    }

    /// Sorts the steps of a run as the first agent has them, then the second, and so on: which agent was heard first
    /// changes nothing.
    pub(crate) fn sort(&self, steps: &mut [RunStep]) {
        let facts = self.facts();
        let mut order: Vec<u32> = Vec::new();
        for index in self.indices.iter().flatten() {
            if !order.contains(index) {
                order.push(*index);
            }
        }
        let named = |step: &RunStep, index: &u32| {
            facts.get(*index as usize).is_some_and(|facts| facts.name == step.name && facts.scenario == step.scenario)
        };
        steps.sort_by_key(|step| order.iter().position(|index| named(step, index)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(name: &str) -> ScriptStep {
        ScriptStep { scenario: "s".into(), name: name.into() }
    }

    proptest! {
        /// Oracle: sums by name.
        #[test]
        fn steps_of_agents_that_number_them_differently_add_up_by_their_names(
            orders in prop::collection::vec(Just(["a", "b", "c", "d"]).prop_shuffle(), 1..4),
            known in prop::collection::vec(1..5_usize, 4),
            requests in prop::collection::vec(0..100_u64, 16),
        ) {
            let mut join = StepJoin::new(orders.len());
            let mut expected = std::collections::BTreeMap::new();
            let mut total = Interval::default();
            for (agent, order) in orders.iter().enumerate() {
                let names = &order[..known[agent]];
                // Names come in two messages.
                let (first, second) = names.split_at(names.len() / 2);
                for part in [first, second] {
                    let steps: Vec<ScriptStep> = part.iter().map(|name| step(name)).collect();
                    join.name(agent, &steps).expect("few steps");
                }
                let mut interval = Interval::default();
                for (index, name) in names.iter().enumerate() {
                    let count = requests[agent * 4 + index];
                    interval.step(u32::try_from(index).expect("few")).requests = count;
                    *expected.entry((*name).to_owned()).or_insert(0) += count;
                }
                join.join(agent, &mut interval).expect("all have names");
                total.add(&interval);
            }
            let joined: std::collections::BTreeMap<String, u64> = join
                .facts()
                .iter()
                .enumerate()
                .map(|(index, facts)| (facts.name.clone(), total.steps.get(index).map_or(0, |step| step.requests)))
                .collect();
            prop_assert_eq!(joined, expected);
        }
    }

    #[test]
    fn a_step_without_a_name_is_an_error_and_agents_without_names_number_alike() {
        let mut join = StepJoin::new(2);
        join.name(0, &[step("a")]).expect("one step");
        let mut interval = Interval::default();
        interval.step(1).requests = 3;
        assert_eq!(join.join(0, &mut interval.clone()).err().as_deref(), Some("2 steps without names"));
        join.join(1, &mut interval).expect("as they are");
        assert_eq!(interval.steps[1].requests, 3);
        assert!(join.name(0, &vec![step("b"); StepNames::MAX_COUNT]).is_err());
    }

    #[test]
    fn steps_are_sorted_as_the_first_agents_have_them() {
        let mut join = StepJoin::new(2);
        join.name(1, &[step("c"), step("a")]).expect("few steps");
        join.name(0, &[step("a"), step("b")]).expect("few steps");
        let mut steps: Vec<RunStep> = join
            .facts()
            .iter()
            .map(|facts| RunStep { name: facts.name.clone(), scenario: facts.scenario.clone(), ..RunStep::default() })
            .collect();
        join.sort(&mut steps);
        assert_eq!(steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

//! Ordinals of iterations among those with the same data.

/// Ordinal of an iteration among those with the same file of data, where scenarios with several files are mixed.
///
/// The scenario of an iteration, and so its file, is a function of its number alone, so every thread counts the
/// iterations of the others too and asks none of them. Numbers that only grow cost one draw for each passed.
#[derive(Clone, Debug, Default)]
pub struct ScenarioOrdinals {
    /// First number that is not counted.
    next: u64,
    /// Iterations with each file among the numbers before it.
    counts: Vec<u64>,
}

impl ScenarioOrdinals {
    /// Number of iterations below `number` that have the same file; `file` is the file of an iteration, if it has one.
    pub fn of(&mut self, file: impl Fn(u64) -> Option<usize>, number: u64) -> u64 {
        if number < self.next {
            *self = Self::default();
        }
        while self.next < number {
            if let Some(file) = file(self.next) {
                *self.count(file) += 1;
            }
            self.next += 1;
        }
        file(number).map_or(0, |file| *self.count(file))
    }

    fn count(&mut self, file: usize) -> &mut u64 {
        if self.counts.len() <= file {
            self.counts.resize(file + 1, 0);
        }
        &mut self.counts[file]
    }
}

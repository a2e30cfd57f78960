//! CPU time that a machine took from the load generator while it ran: a cause of late sends that the generator itself
//! cannot see.

use weir_base::Nanos;

/// CPU time that the generator did not get.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StolenTime {
    /// Fraction of the CPU time of all cores that the hypervisor gave to other guests, in [0, 1].
    pub steal_fraction: f64,
    /// Time for which threads were stopped because their CPU quota was used up, over all threads.
    pub throttled: Nanos,
}

/// Fraction above which steal is a cause of late sends; below it a guest hardly notices others.
const MIN_STEAL_FRACTION: f64 = 0.005;
/// Time above which throttling is a cause of late sends.
const MIN_THROTTLED: Nanos = Nanos::from_millis(1);

impl StolenTime {
    /// Causes of late sends, each with its remedy, a sentence or two each. Time that was taken from a generator that was
    /// on time has distorted nothing: this is evidence only beside late sends or a thread without time left.
    pub fn causes(&self) -> Vec<String> {
        let steal = (self.steal_fraction >= MIN_STEAL_FRACTION).then(|| {
            format!(
                "The hypervisor gave {:.1}% of this machine's CPU time to other guests meanwhile (steal). Use a machine \
                 with cores of its own.",
                self.steal_fraction * 100.0
            )
        });
        let throttled = (self.throttled >= MIN_THROTTLED).then(|| {
            format!(
                "The CPU quota of weir's container stopped its threads for {} in all. Give it whole cores, or no limit of \
                 CPU.",
                self.throttled
            )
        });
        steal.into_iter().chain(throttled).collect()
    }
}

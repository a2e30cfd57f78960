//! Which cores the variant has, and which the load.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::definition::CpuAllocation;

/// Cores by number; empty is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuSets {
    /// Of services and variants.
    pub(super) service_cpus: Vec<usize>,
    /// Of the load and of the sampling.
    pub(super) load_cpus: Vec<usize>,
}

impl CpuSets {
    /// Deals out the cores of this process. With one core there is nothing to deal out.
    pub(super) fn of(cpus: CpuAllocation) -> Self {
        Self::divide(&available_cpus(), cpus)
    }

    fn divide(ours: &[usize], cpus: CpuAllocation) -> Self {
        let wanted = match cpus {
            CpuAllocation::All => return Self::default(),
            CpuAllocation::Half => ours.len() / 2,
            CpuAllocation::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        if ours.len() < 2 {
            return Self::default();
        }
        let (service, load) = ours.split_at(wanted.clamp(1, ours.len()));
        // Whoever wants all for the service shares them with the load.
        let load = if load.is_empty() { ours } else { load };
        Self { service_cpus: service.to_vec(), load_cpus: load.to_vec() }
    }

    /// Whether nobody has a core of the other.
    pub(super) fn are_disjoint(&self) -> bool {
        !self.service_cpus.is_empty() && self.load_cpus.iter().all(|cpu| !self.service_cpus.contains(cpu))
    }
}

/// The cores that this thread may use.
fn available_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Keeps this thread, and those that it starts from now on, to these cores. A system that refuses leaves all as it is.
pub(super) fn pin_to(cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    let _ = sched_setaffinity(None, &set);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_dealt_out_and_nobody_is_left_without() {
        let deal = |ours: &[usize], cpus| {
            let split = CpuSets::divide(ours, cpus);
            (split.service_cpus, split.load_cpus)
        };
        assert_eq!(deal(&[0, 1, 2, 5], CpuAllocation::Half), (vec![0, 1], vec![2, 5]));
        assert_eq!(deal(&[0, 1, 2], CpuAllocation::Half), (vec![0], vec![1, 2]));
        assert_eq!(deal(&[0, 1, 2], CpuAllocation::Count(2)), (vec![0, 1], vec![2]));
        assert_eq!(deal(&[0, 1], CpuAllocation::Count(9)), (vec![0, 1], vec![0, 1]));
        assert_eq!(deal(&[3], CpuAllocation::Half), (vec![], vec![]));
        assert_eq!(deal(&[0, 1], CpuAllocation::All), (vec![], vec![]));
        assert!(
            CpuSets::divide(&[0, 1], CpuAllocation::Half).are_disjoint()
                && !CpuSets::divide(&[0, 1], CpuAllocation::Count(2)).are_disjoint()
        );
    }
}

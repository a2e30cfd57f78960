//! Division of the cores between the variant and the load.

use super::definition::CpuAllocation;
use weir_machine::system::cpu_affinity;

/// Cores of both sides, by number; empty: all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuSets {
    /// Cores of services and variants.
    pub(super) service_cpus: Vec<usize>,
    /// Cores of the load and the sampling.
    pub(super) load_cpus: Vec<usize>,
}

impl CpuSets {
    /// Division of the cores of this process; with a single core, both sides have it.
    pub(super) fn of(cpus: CpuAllocation) -> Self {
        Self::divide(&cpu_affinity::available_cpus(), cpus)
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
        // If the service has all cores, the load shares them.
        let load = if load.is_empty() { ours } else { load };
        Self { service_cpus: service.to_vec(), load_cpus: load.to_vec() }
    }

    /// Whether service and load have separate cores.
    pub(super) fn are_disjoint(&self) -> bool {
        !self.service_cpus.is_empty() && self.load_cpus.iter().all(|cpu| !self.service_cpus.contains(cpu))
    }
}

/// Pins this thread, and those that it starts from now on, to these cores; without effect if the system denies it.
pub(super) fn pin_to(cpus: &[usize]) {
    let _ = cpu_affinity::pin_to(cpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_divided_and_both_sides_have_some() {
        let divide = |ours: &[usize], cpus| {
            let split = CpuSets::divide(ours, cpus);
            (split.service_cpus, split.load_cpus)
        };
        assert_eq!(divide(&[0, 1, 2, 5], CpuAllocation::Half), (vec![0, 1], vec![2, 5]));
        assert_eq!(divide(&[0, 1, 2], CpuAllocation::Half), (vec![0], vec![1, 2]));
        assert_eq!(divide(&[0, 1, 2], CpuAllocation::Count(2)), (vec![0, 1], vec![2]));
        assert_eq!(divide(&[0, 1], CpuAllocation::Count(9)), (vec![0, 1], vec![0, 1]));
        assert_eq!(divide(&[3], CpuAllocation::Half), (vec![], vec![]));
        assert_eq!(divide(&[0, 1], CpuAllocation::All), (vec![], vec![]));
        assert!(
            CpuSets::divide(&[0, 1], CpuAllocation::Half).are_disjoint()
                && !CpuSets::divide(&[0, 1], CpuAllocation::Count(2)).are_disjoint()
        );
    }
}

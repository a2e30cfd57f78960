//! Which cores the variant has, and which the load.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::definition::Cpus;

/// Cores by number; empty is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    /// Of services and variants.
    pub(super) service: Vec<usize>,
    /// Of the load and of the sampling.
    pub(super) load: Vec<usize>,
}

impl Split {
    /// Deals out the cores of this process. With one core there is nothing to deal out.
    pub(super) fn of(cpus: Cpus) -> Self {
        Self::deal(&ours(), cpus)
    }

    fn deal(ours: &[usize], cpus: Cpus) -> Self {
        let wanted = match cpus {
            Cpus::All => return Self::default(),
            Cpus::Half => ours.len() / 2,
            Cpus::Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        };
        if ours.len() < 2 {
            return Self::default();
        }
        let (service, load) = ours.split_at(wanted.clamp(1, ours.len()));
        // Whoever wants all for the service shares them with the load.
        let load = if load.is_empty() { ours } else { load };
        Self { service: service.to_vec(), load: load.to_vec() }
    }

    /// Whether nobody has a core of the other.
    pub(super) fn is_apart(&self) -> bool {
        !self.service.is_empty() && self.load.iter().all(|cpu| !self.service.contains(cpu))
    }
}

/// The cores that this thread may use.
fn ours() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Keeps this thread, and those that it starts from now on, to these cores. A system that refuses leaves all as it is.
pub(super) fn keep_to(cpus: &[usize]) {
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
            let split = Split::deal(ours, cpus);
            (split.service, split.load)
        };
        assert_eq!(deal(&[0, 1, 2, 5], Cpus::Half), (vec![0, 1], vec![2, 5]));
        assert_eq!(deal(&[0, 1, 2], Cpus::Half), (vec![0], vec![1, 2]));
        assert_eq!(deal(&[0, 1, 2], Cpus::Some(2)), (vec![0, 1], vec![2]));
        assert_eq!(deal(&[0, 1], Cpus::Some(9)), (vec![0, 1], vec![0, 1]));
        assert_eq!(deal(&[3], Cpus::Half), (vec![], vec![]));
        assert_eq!(deal(&[0, 1], Cpus::All), (vec![], vec![]));
        assert!(Split::deal(&[0, 1], Cpus::Half).is_apart() && !Split::deal(&[0, 1], Cpus::Some(2)).is_apart());
    }
}

//! CPU quota of a control group, as containers have it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// CPU quota of this process's control groups, and how long they have been stopped for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuQuota {
    /// CPU time per time, in cores; None without a quota.
    pub cores: Option<f64>,
    /// Time for which threads were stopped since the group exists, in microseconds.
    pub throttled_us: u64,
}

/// Root of the control groups.
const CGROUPS: &str = "/sys/fs/cgroup";

impl CpuQuota {
    /// Quota of this process; without one where the system has no control groups.
    pub fn read() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(&groups, Path::new(CGROUPS))
    }

    /// Smallest quota of the groups in `groups` (the text of `/proc/self/cgroup`) and of all above them, below `root`.
    pub(super) fn of(groups: &str, root: &Path) -> Self {
        let mut found = Self::default();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let mounts: &[&str] = match controllers {
                "" => &["", "unified"],
                named if named.split(',').any(|name| name == "cpu") => &["cpu", "cpu,cpuacct"],
                _ => continue,
            };
            for mount in mounts {
                for folder in with_ancestors(&root.join(mount), path) {
                    found = found.and(&folder);
                }
            }
        }
        found
    }

    /// This quota, or that of a group's folder if it is smaller. Times are of the innermost group that has them.
    fn and(mut self, folder: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let cores =
            quota_v2(&text("cpu.max")).or_else(|| quota_v1(&text("cpu.cfs_quota_us"), &text("cpu.cfs_period_us")));
        if let Some(cores) = cores {
            self.cores = Some(self.cores.map_or(cores, |least| least.min(cores)));
            self.throttled_us = self.throttled_us.max(throttled_us(&text("cpu.stat")));
        }
        self
    }
}

/// Folders of a group and of those above it, from the inside to the outside.
fn with_ancestors(mount: &Path, path: &str) -> Vec<PathBuf> {
    // A container may see the path of the host; then nothing is there, and its own group is the root.
    let relative = Path::new(path.trim_start_matches('/'));
    let is_below = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let ancestors = relative.ancestors().filter(|_| is_below).map(|inner| mount.join(inner));
    ancestors.chain([mount.to_owned()]).collect()
}

/// Cores of `cpu.max`: `quota period` in microseconds, or `max period`.
pub(super) fn quota_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// Cores of `cpu.cfs_quota_us` and `cpu.cfs_period_us`; a quota of -1 is none.
pub(super) fn quota_v1(quota: &str, period: &str) -> Option<f64> {
    ratio(quota.trim(), period.trim())
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Time of `cpu.stat`: `throttled_usec`, or `throttled_time` in nanoseconds.
pub(super) fn throttled_us(text: &str) -> u64 {
    let field = |name: &str| {
        let of = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
        text.lines().find_map(of)
    };
    field("throttled_usec ").or_else(|| field("throttled_time ").map(|ns| ns / 1000)).unwrap_or(0)
}

//! Facts about a machine that measurements depend on.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use serde::Serialize;

use super::{CpuQuota, CpuTicks, CpuUse, TcpLimits, TimerLateness};
use crate::clock;

/// Facts about this machine; None where the system does not show one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineFacts {
    /// Release of the kernel: `6.1.0-18-amd64`.
    pub kernel: String,
    /// Interfaces of the system that this build uses: `Linux` or `portable`.
    pub interfaces: &'static str,
    /// Number of cores that are online.
    pub cores_online: u64,
    /// Number of cores that this process may use, by affinity and quota.
    pub cores_usable: u64,
    /// CPU quota of the control group.
    pub quota: CpuQuota,
    /// Use of all cores while the timers were measured.
    pub cpu: Option<CpuUse>,
    /// Fraction of the CPU time since boot that the hypervisor gave to other guests, in [0, 1].
    pub steal_since_boot_fraction: Option<f64>,
    /// Frequency governors of the cores; empty where the system does not show them, as in most virtual machines.
    pub governors: BTreeSet<String>,
    /// Driver of the frequencies: `intel_pstate`, `acpi-cpufreq`.
    pub frequency_driver: Option<String>,
    /// Source of the kernel's clock: `tsc`, `kvm-clock`.
    pub clock_source: Option<String>,
    /// Time to read the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// Lateness of timers.
    pub timers: Option<TimerLateness>,
    /// Limit of open files of this process, which it may raise up to the next one; None is unlimited.
    pub open_files_soft: Option<u64>,
    /// Hard limit of open files; None is unlimited.
    pub open_files_hard: Option<u64>,
    /// Limits of TCP.
    pub tcp: TcpLimits,
    /// Memory that processes can get without swapping, in MiB.
    pub memory_available_mib: Option<u64>,
    /// Number of the system's CA certificates, or 0; set by the caller, which has the TLS library.
    pub ca_certificates: Option<u64>,
}

/// Reads of the clock for their mean.
const CLOCK_READS: u32 = 2000;

impl MachineFacts {
    /// Facts of this machine; takes half a second, in which timers are measured.
    pub fn read() -> Self {
        let before = CpuTicks::read();
        let timers = TimerLateness::measure();
        let after = CpuTicks::read();
        let files = getrlimit(Resource::Nofile);
        let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        Self {
            kernel: uname().release().to_string_lossy().into_owned(),
            interfaces: crate::system::NAME,
            cores_online: text("/proc/stat").map_or(0, |stat| core_count(&stat)),
            cores_usable: crate::cores(),
            quota: CpuQuota::read(),
            cpu: before.zip(after).map(|(before, after)| after.since(before)),
            steal_since_boot_fraction: after.map(|now| now.since(CpuTicks::default()).steal_fraction),
            governors: governors(),
            frequency_driver: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock_read_ns: clock_read_ns(),
            timers,
            open_files_soft: files.current,
            open_files_hard: files.maximum,
            tcp: TcpLimits::read(),
            memory_available_mib: text("/proc/meminfo").and_then(|memory| available_mib(&memory)),
            ca_certificates: None,
        }
    }
}

/// Number of lines `cpuN` of `/proc/stat`.
pub(super) fn core_count(stat: &str) -> u64 {
    let is_core =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    stat.lines().filter(is_core).count() as u64
}

/// Memory of the line `MemAvailable`, in MiB.
pub(super) fn available_mib(memory: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

fn governors() -> BTreeSet<String> {
    let folders = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let of = |folder: fs::DirEntry| fs::read_to_string(folder.path().join("cpufreq/scaling_governor")).ok();
    folders.filter_map(of).map(|name| name.trim().to_owned()).collect()
}

fn clock_read_ns() -> f64 {
    let start = clock::monotonic();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(clock::monotonic());
    }
    (clock::monotonic().0.saturating_sub(start.0)) as f64 / f64::from(CLOCK_READS)
}

//! Checks of cores, CPU time, clocks and timers.

use super::{CpuQuota, CpuUse, MachineCheck, MachineFacts};
use weir_base::Nanos;

/// Fraction of the CPU time that a hypervisor may take before response times show it.
const MAX_STEAL_FRACTION: f64 = 0.01;
/// Use of all cores by other processes above which they compete with a load.
const MAX_BUSY_FRACTION: f64 = 0.25;
/// Time to read a clock above which it is not the processor's own counter, in nanoseconds.
const MAX_CLOCK_READ_NS: f64 = 250.0;
/// Lateness of the median timer above which arrivals are visibly late.
const MAX_TIMER_P50: Nanos = Nanos(200_000);
/// Lateness of 1% of the timers above which percentiles contain it.
const MAX_TIMER_P99: Nanos = Nanos::from_millis(1);

pub(super) fn cores(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a load generator and a service on the same cores take time from each other";
    let found = format!("{} of {}", facts.cores_usable, facts.cores_online.max(facts.cores_usable));
    let check = MachineCheck::ok("cores", found, meaning);
    match facts.cores_usable {
        0..=1 => check.warning("measure services on other machines, or use a machine with more cores"),
        2..=3 => {
            check.note("a service on this machine: give it cores of its own (taskset), and weir one thread (-t 1)")
        }
        _ => check,
    }
}

pub(super) fn quota(facts: &MachineFacts) -> MachineCheck {
    let meaning = "at the quota all threads stop for the rest of a period, up to 100 ms, and everything sent is late";
    let CpuQuota { cores, throttled_us } = facts.quota;
    let Some(cores) = cores else {
        return MachineCheck::ok("CPU quota", "none".into(), meaning);
    };
    let stopped_ms = throttled_us / 1000;
    let check = MachineCheck::ok("CPU quota", format!("{cores:.1} cores, {stopped_ms} ms stopped so far"), meaning);
    if cores < 1.0 || stopped_ms > 0 {
        check.warning("give the container whole cores (cpuset) and no limit of CPU, or a larger one")
    } else {
        check.note(format!("use fewer threads (-t) than {}, or remove the limit", cores.floor().max(2.0)))
    }
}

pub(super) fn cpu_use(facts: &MachineFacts) -> MachineCheck {
    let meaning = "other processes take time from the load generator: what it sends is late, by chance";
    let Some(CpuUse { busy_fraction, .. }) = facts.cpu else {
        return MachineCheck::ok("CPU use", "unknown".into(), meaning);
    };
    MachineCheck::ok("CPU use", percent_of_cores(busy_fraction), meaning)
        .warning_if(busy_fraction > MAX_BUSY_FRACTION, "end other processes ('top' shows them), or measure elsewhere")
}

pub(super) fn steal(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a hypervisor that runs other guests stops this machine for milliseconds; no process here sees why";
    let now = facts.cpu.map(|cpu| cpu.steal_fraction);
    let found = match (now, facts.steal_since_boot_fraction) {
        (Some(now), Some(boot)) => format!("{:.1}% now, {:.1}% since boot", now * 100.0, boot * 100.0),
        _ => "unknown".to_owned(),
    };
    let check = MachineCheck::ok("steal", found, meaning);
    if now.is_some_and(|fraction| fraction > MAX_STEAL_FRACTION) {
        check.warning("use a machine with dedicated cores, and repeat runs; compare only runs side by side")
    } else if facts.steal_since_boot_fraction.is_some_and(|fraction| fraction > MAX_STEAL_FRACTION) {
        check.note("other guests were busy before: repeat runs, and compare only runs side by side")
    } else {
        check
    }
}

pub(super) fn frequency(facts: &MachineFacts) -> MachineCheck {
    let meaning = "cores that clock down when idle serve the first requests after a pause more slowly";
    if facts.governors.is_empty() {
        return MachineCheck::ok("CPU governor", "not visible here, as in most virtual machines".into(), meaning);
    }
    let names: Vec<&str> = facts.governors.iter().map(String::as_str).collect();
    let driver = facts.frequency_driver.as_deref().unwrap_or_default();
    let found = format!("{} {}", names.join(", "), driver).trim_end().to_owned();
    let check = MachineCheck::ok("CPU governor", found, meaning);
    let is_fixed = names.iter().all(|name| *name == "performance");
    if is_fixed { check } else { check.note("for benchmarks: cpupower frequency-set -g performance") }
}

pub(super) fn clock_source(facts: &MachineFacts) -> MachineCheck {
    let meaning = "the clock is read several times per request; one that needs a system call slows down the generator";
    let name = facts.clock_source.as_deref().unwrap_or("unknown");
    MachineCheck::ok("clock", format!("{name}, {:.0} ns per read", facts.clock_read_ns), meaning).warning_if(
        facts.clock_read_ns > MAX_CLOCK_READ_NS,
        "use the processor's counter: clocksource=tsc, or the hypervisor's clock (kvm-clock, hyperv)",
    )
}

pub(super) fn timers(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a request at a fixed rate is sent when a timer wakes weir up: this is how late on an idle generator";
    let Some(late) = facts.timers else {
        return MachineCheck::ok("timers", "unknown".into(), meaning).note("the lateness of timers was not measured");
    };
    let found = format!("p50 {}, p99 {}, max {} late", late.p50, late.p99, late.max);
    let check = MachineCheck::ok("timers", found, meaning);
    match (late.p50 > MAX_TIMER_P50, late.p99 > MAX_TIMER_P99) {
        (true, _) => check.warning("use weir load --spin, which does not sleep, or a machine that is less busy"),
        (false, true) => check.note("a few sends per thousand may be late: end other processes, or use --spin"),
        (false, false) => check,
    }
}

fn percent_of_cores(fraction: f64) -> String {
    format!("{:.0}% of all cores", fraction * 100.0)
}

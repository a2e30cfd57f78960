//! Properties: more of what is good never makes a finding worse, and no text of a system file ends the program.

use proptest::prelude::*;

use super::super::cpu_quota::{quota_v1, quota_v2, throttled_us};
use super::super::machine_facts::{available_mib, core_count};
use super::super::tcp_limits::{port_count, time_wait_count};
use super::super::{CheckStatus, CpuQuota, CpuTicks, CpuUse, MachineFacts, TimerLateness, check};
use super::good_machine;
use weir_base::Nanos;

/// Rank of a percentile by counting: the smallest sample that at least so much of all does not exceed.
fn percentile_by_counting(samples: &[Nanos], percent: usize) -> Nanos {
    let is_enough =
        |limit: &&Nanos| samples.iter().filter(|sample| sample <= limit).count() * 100 >= samples.len() * percent;
    samples.iter().filter(is_enough).min().copied().expect("the maximum is enough")
}

fn worst(facts: &MachineFacts, name: &str) -> CheckStatus {
    check(facts).iter().filter(|check| check.name == name).map(|check| check.status).max().expect("a check")
}

proptest! {
    #[test]
    fn percentiles_of_lateness_are_those_by_counting(late in prop::collection::vec(0_u64..5_000_000, 1..400)) {
        let samples: Vec<Nanos> = late.into_iter().map(Nanos).collect();
        let found = TimerLateness::of(samples.clone()).expect("samples");
        prop_assert_eq!(found.p50, percentile_by_counting(&samples, 50));
        prop_assert_eq!(found.p99, percentile_by_counting(&samples, 99));
        prop_assert_eq!(found.max, percentile_by_counting(&samples, 100));
    }

    #[test]
    fn a_better_machine_never_has_a_worse_finding(
        cores in 1_u64..64, files in 0_u64..2_000_000, steal in 0.0_f64..1.0, late in 0_u64..4_000_000,
        waits in 0_u64..70_000, better in 1.0_f64..10.0,
    ) {
        let with = |better: f64| {
            let mut facts = good_machine();
            let more = |value: u64| (value as f64 * better) as u64;
            let less = |value: f64| value / better;
            facts.cores_usable = more(cores);
            facts.open_files_hard = Some(more(files));
            facts.cpu = Some(CpuUse { busy_fraction: less(1.0 - steal), steal_fraction: less(steal) });
            let late = Nanos(less(late as f64) as u64);
            facts.timers = Some(TimerLateness { p50: late, p99: late, max: late });
            facts.tcp.time_wait = Some(less(waits as f64) as u64);
            facts
        };
        let (worse, better) = (with(1.0), with(better));
        for name in ["cores", "open files", "steal", "CPU use", "timers", "TIME_WAIT"] {
            prop_assert!(worst(&better, name) <= worst(&worse, name), "{}: {:?} {:?}", name, worse, better);
        }
    }

    #[test]
    fn every_finding_that_is_not_ok_has_a_remedy_and_no_other(
        usable in 0_u64..9, quota in prop::option::of(0.01_f64..16.0), throttled in 0_u64..9999,
        kernel in "[0-9a-z.-]{0,12}", files in prop::option::of(any::<u64>()), roots in prop::option::of(0_u64..3),
    ) {
        let mut facts = good_machine();
        facts.cores_usable = usable;
        facts.quota = CpuQuota { cores: quota, throttled_us: throttled };
        facts.kernel = kernel;
        facts.open_files_hard = files;
        facts.ca_certificates = roots;
        for check in check(&facts) {
            prop_assert_eq!(check.remedy.is_some(), check.status != CheckStatus::Ok, "{:?}", check);
        }
    }

    #[test]
    fn no_text_of_a_system_file_ends_the_program(text in "(cpu|TCP:|tw|MemAvailable:|[0-9]{1,25}|max|-| |\n|\\PC){0,60}") {
        let _ = (CpuTicks::parse(&text), quota_v1(&text, &text), quota_v2(&text), throttled_us(&text));
        let _ = (port_count(&text), time_wait_count(&text), available_mib(&text), core_count(&text));
        let root = std::path::Path::new("/nowhere");
        let _ = CpuQuota::of(&text, root);
    }

    #[test]
    fn fractions_of_cpu_time_are_fractions(now in any::<[u64; 3]>(), then in any::<[u64; 3]>()) {
        let ticks = |[busy, idle, steal]: [u64; 3]| CpuTicks { busy, idle, steal };
        let found = ticks(now).since(ticks(then));
        prop_assert!((0.0..=1.0).contains(&found.busy_fraction) && (0.0..=1.0).contains(&found.steal_fraction));
    }
}

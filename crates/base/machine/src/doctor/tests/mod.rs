//! Tests of the checks and of the readers of the system's files.

mod properties;
mod readers;

use super::{CheckStatus, CpuQuota, CpuUse, FilledTable, MachineFacts, TcpLimits, TimerLateness, check};
use weir_base::Nanos;

/// Facts of a machine that is right in all of them.
pub(super) fn good_machine() -> MachineFacts {
    MachineFacts {
        kernel: "6.1.0-18-amd64".into(),
        interfaces: "Linux",
        cores_online: 8,
        cores_usable: 8,
        quota: CpuQuota::default(),
        cpu: Some(CpuUse { busy_fraction: 0.02, steal_fraction: 0.0 }),
        steal_since_boot_fraction: Some(0.0),
        governors: ["performance".to_owned()].into(),
        frequency_driver: Some("intel_pstate".into()),
        clock_source: Some("tsc".into()),
        clock_read_ns: 25.0,
        timers: Some(TimerLateness { p50: Nanos(20_000), p99: Nanos(60_000), max: Nanos(100_000) }),
        open_files_soft: Some(1024),
        open_files_hard: Some(1_048_576),
        tcp: TcpLimits {
            local_ports: Some(28_232),
            time_wait: Some(3),
            time_wait_reuse: Some(2),
            somaxconn: Some(4096),
            conntrack: Some(FilledTable { used: 10, max: 262_144 }),
        },
        memory_available_mib: Some(8192),
        ca_certificates: Some(140),
    }
}

fn status_of(facts: &MachineFacts, name: &str) -> CheckStatus {
    check(facts).iter().find(|check| check.name == name).map(|check| check.status).expect("a check of this name")
}

#[test]
fn a_good_machine_has_no_finding_and_every_check_has_a_name_and_a_meaning() {
    let checks = check(&good_machine());
    assert!(checks.iter().all(|check| check.status == CheckStatus::Ok && check.remedy.is_none()), "{checks:#?}");
    let names: std::collections::BTreeSet<&str> = checks.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), checks.len());
    assert!(checks.iter().all(|check| !check.meaning.is_empty() && !check.found.is_empty()));
}

#[test]
fn each_fault_is_found_by_its_check_alone_and_has_a_remedy() {
    use CheckStatus::{Note, Warning};
    type Spoil = fn(&mut MachineFacts);
    let faults: [(&str, CheckStatus, Spoil); 20] = [
        ("kernel", Warning, |facts| facts.kernel = "5.10.0-28-amd64".into()),
        ("kernel", Note, |facts| facts.kernel = "custom".into()),
        ("kernel", Note, |facts| facts.interfaces = "portable"),
        ("cores", Warning, |facts| facts.cores_usable = 1),
        ("cores", Note, |facts| facts.cores_usable = 2),
        ("CPU quota", Warning, |facts| facts.quota = CpuQuota { cores: Some(0.5), throttled_us: 0 }),
        ("CPU quota", Warning, |facts| facts.quota = CpuQuota { cores: Some(4.0), throttled_us: 9000 }),
        ("CPU quota", Note, |facts| facts.quota = CpuQuota { cores: Some(4.0), throttled_us: 0 }),
        ("CPU use", Warning, |facts| facts.cpu = Some(CpuUse { busy_fraction: 0.5, steal_fraction: 0.0 })),
        ("steal", Warning, |facts| facts.cpu = Some(CpuUse { busy_fraction: 0.0, steal_fraction: 0.05 })),
        ("steal", Note, |facts| facts.steal_since_boot_fraction = Some(0.03)),
        ("CPU governor", Note, |facts| facts.governors = ["powersave".to_owned()].into()),
        ("clock", Warning, |facts| facts.clock_read_ns = 900.0),
        ("timers", Warning, |facts| {
            facts.timers = Some(TimerLateness { p50: Nanos(500_000), p99: Nanos(600_000), max: Nanos(700_000) });
        }),
        ("memory", Warning, |facts| facts.memory_available_mib = Some(100)),
        ("open files", Warning, |facts| facts.open_files_hard = Some(1024)),
        ("local ports", Warning, |facts| facts.tcp.local_ports = Some(5000)),
        ("TIME_WAIT", Warning, |facts| facts.tcp.time_wait = Some(20_000)),
        ("accept backlog", Note, |facts| facts.tcp.somaxconn = Some(128)),
        ("CA certificates", Warning, |facts| facts.ca_certificates = Some(0)),
    ];
    for (name, status, spoil) in faults {
        let mut facts = good_machine();
        spoil(&mut facts);
        let found: Vec<_> = check(&facts).into_iter().filter(|check| check.status != CheckStatus::Ok).collect();
        assert_eq!(found.iter().map(|check| (check.name, check.status)).collect::<Vec<_>>(), [(name, status)]);
        assert!(found[0].remedy.as_ref().is_some_and(|remedy| !remedy.is_empty()), "{name}");
    }
}

#[test]
fn a_machine_that_shows_nothing_gets_no_warning_for_it() {
    let facts = MachineFacts { kernel: "6.1.0".into(), cores_usable: 4, ..MachineFacts::default() };
    let statuses: Vec<_> = check(&facts).iter().map(|check| (check.name, check.status)).collect();
    assert!(statuses.iter().all(|(_, status)| *status != CheckStatus::Warning), "{statuses:?}");
    assert_eq!(status_of(&facts, "timers"), CheckStatus::Note);
}

#[test]
fn a_full_table_of_connections_is_found() {
    let mut facts = good_machine();
    facts.tcp.conntrack = Some(FilledTable { used: 60_000, max: 65_536 });
    assert_eq!(status_of(&facts, "conntrack"), CheckStatus::Warning);
}

#[test]
fn this_machine_is_read_and_its_facts_are_plausible() {
    let facts = MachineFacts::read();
    assert!(facts.cores_usable >= 1 && facts.cores_online >= facts.cores_usable, "{facts:?}");
    let timers = facts.timers.expect("timers of Linux");
    assert!(timers.p50 <= timers.p99 && timers.p99 <= timers.max && timers.max > Nanos::ZERO, "{timers:?}");
    assert!(facts.clock_read_ns > 0.0 && facts.memory_available_mib > Some(0), "{facts:?}");
    assert!(facts.tcp.local_ports.is_some_and(|ports| ports <= 65_536));
    let cpu = facts.cpu.expect("CPU times of Linux");
    assert!((0.0..=1.0).contains(&cpu.busy_fraction) && (0.0..=1.0).contains(&cpu.steal_fraction), "{cpu:?}");
}

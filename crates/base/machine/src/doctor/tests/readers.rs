//! Readers of the system's files, with texts of real machines.

use std::fs;

use super::super::cpu_quota::{quota_v1, quota_v2, throttled_us};
use super::super::machine_facts::{available_mib, core_count};
use super::super::tcp_limits::{port_count, time_wait_count};
use super::super::{CpuQuota, CpuTicks};

const STAT: &str = "cpu  100 20 30 800 40 0 10 50 7 0\ncpu0 60 10 15 400 20 0 5 25 7 0\ncpu1 40 10 15 400 20 0 5 25 0 0\nintr 1\nctxt 9\n";

#[test]
fn cpu_times_are_those_of_all_cores_without_the_time_of_guests_twice() {
    let now = CpuTicks::parse(STAT).expect("times");
    assert_eq!(now, CpuTicks { busy: 160, idle: 840, steal: 50 });
    assert_eq!(core_count(STAT), 2);
    let whole = now.since(CpuTicks::default());
    assert!((whole.steal_fraction - 50.0 / 1050.0).abs() < 1e-12, "{whole:?}");
    assert_eq!(now.since(now), super::CpuUse::default());
    assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    assert_eq!(CpuTicks::parse("intr 5\n"), None);
}

#[test]
fn quotas_of_both_versions_are_read_and_none_is_none() {
    assert_eq!(quota_v2("150000 100000\n"), Some(1.5));
    assert_eq!(quota_v2("max 100000\n"), None);
    assert_eq!(quota_v1("50000\n", "100000\n"), Some(0.5));
    assert_eq!((quota_v1("-1\n", "100000\n"), quota_v1("", ""), quota_v2("5 0")), (None, None, None));
    assert_eq!(throttled_us("nr_periods 5\nnr_throttled 2\nthrottled_usec 1234\n"), 1234);
    assert_eq!(throttled_us("nr_periods 5\nnr_throttled 2\nthrottled_time 1234000\n"), 1234);
    assert_eq!(throttled_us(""), 0);
}

#[test]
fn the_smallest_quota_above_a_process_counts() {
    let root = tempfile::tempdir().expect("a folder");
    let group = root.path().join("outer/inner");
    fs::create_dir_all(&group).expect("folders");
    fs::write(root.path().join("outer/cpu.max"), "200000 100000\n").expect("a file");
    fs::write(root.path().join("outer/cpu.stat"), "throttled_usec 7\n").expect("a file");
    fs::write(group.join("cpu.max"), "max 100000\n").expect("a file");
    let of = |groups: &str| CpuQuota::of(groups, root.path());
    assert_eq!(of("0::/outer/inner\n"), CpuQuota { cores: Some(2.0), throttled_us: 7 });
    fs::write(group.join("cpu.max"), "50000 100000\n").expect("a file");
    assert_eq!(of("1:name=systemd:/\n0::/outer/inner\n").cores, Some(0.5));
    // In a container the path may be that of the host, and lead nowhere, or out of the mount.
    assert_eq!(of("0::/../../outer/inner\n"), CpuQuota::default());
    assert_eq!(of("0::/not/here\n"), CpuQuota::default());
    fs::create_dir_all(root.path().join("cpu,cpuacct/job")).expect("folders");
    fs::write(root.path().join("cpu,cpuacct/job/cpu.cfs_quota_us"), "25000\n").expect("a file");
    fs::write(root.path().join("cpu,cpuacct/job/cpu.cfs_period_us"), "100000\n").expect("a file");
    assert_eq!(of("4:cpu,cpuacct:/job\n").cores, Some(0.25));
}

#[test]
fn ports_and_sockets_are_counted() {
    assert_eq!(port_count("32768\t60999\n"), Some(28_232));
    assert_eq!((port_count("60999 32768"), port_count("1"), port_count("")), (None, None, None));
    assert_eq!(time_wait_count("sockets: used 16\nTCP: inuse 5 orphan 0 tw 12 alloc 9 mem 1\n"), Some(12));
    assert_eq!(time_wait_count("sockets: used 16\n"), None);
    assert_eq!(available_mib("MemTotal: 2048 kB\nMemAvailable:    1048576 kB\n"), Some(1024));
}

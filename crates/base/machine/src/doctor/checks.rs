//! Checks of a machine's facts. Each is a pure function: what it found, what that means for a measurement, and what to
//! do about it.

use super::cpu_checks::{clock_source, cores, cpu_use, frequency, quota, steal, timers};
use super::{MachineCheck, MachineFacts};

/// First release of Linux that weir runs on, for `epoll_pwait2`.
const MIN_KERNEL: (u64, u64) = (5, 11);
/// Consequence of a build without Linux's own interfaces, for the report.
const PORTABLE_MEANING: &str = "responses are timed when they are read, not when they arrive, and CPU is not sampled";
/// Connections below which a limit of open files is in the way of usual loads.
const FEW_CONNECTIONS: u64 = 4096;
/// Seconds that the kernel keeps a port in TIME_WAIT.
const TIME_WAIT_S: u64 = 60;
/// Fraction of a table from which on it is nearly full.
const NEARLY_FULL_FRACTION: f64 = 0.8;
/// Fraction of the local ports in TIME_WAIT from which on new connections may find none.
const MANY_PORTS_FRACTION: f64 = 0.5;
/// Backlog below which a burst of connections overflows it.
const SMALL_BACKLOG: u64 = 1024;
/// Memory below which a load of many users may not fit, in MiB.
const LITTLE_MEMORY_MIB: u64 = 512;

/// Checks, in the order of the report.
const CHECKS: [fn(&MachineFacts) -> MachineCheck; 15] = [
    kernel,
    cores,
    quota,
    cpu_use,
    steal,
    frequency,
    clock_source,
    timers,
    memory,
    open_files,
    local_ports,
    time_wait,
    backlog,
    conntrack,
    certificates,
];

/// Results of all checks of a machine.
pub fn check(facts: &MachineFacts) -> Vec<MachineCheck> {
    CHECKS.iter().map(|rule| rule(facts)).collect()
}

fn kernel(facts: &MachineFacts) -> MachineCheck {
    let meaning = "weir needs Linux 5.11 for exact waits on sockets (epoll_pwait2)";
    let check = MachineCheck::ok("kernel", facts.kernel.clone(), meaning);
    if facts.interfaces != "Linux" {
        return MachineCheck::ok("kernel", format!("{}, {} build", facts.kernel, facts.interfaces), PORTABLE_MEANING)
            .note("measure from Linux, with the build for it, where microseconds count");
    }
    match kernel_version(&facts.kernel) {
        Some(version) if version >= MIN_KERNEL => check,
        Some(_) => check.warning("run weir on Linux 5.11 or later"),
        None => check.note("compare it with 5.11 by hand: the release has an unusual form"),
    }
}

/// First two numbers of a release.
pub(super) fn kernel_version(release: &str) -> Option<(u64, u64)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn memory(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a machine that swaps stalls both the load generator and a service beside it";
    let found = facts.memory_available_mib.map_or_else(|| "unknown".to_owned(), |mib| format!("{mib} MiB available"));
    let is_little = facts.memory_available_mib.is_some_and(|mib| mib < LITTLE_MEMORY_MIB);
    MachineCheck::ok("memory", found, meaning).warning_if(is_little, "end other processes, or use a larger machine")
}

fn open_files(facts: &MachineFacts) -> MachineCheck {
    let meaning = "each connection is an open file; weir raises the soft limit by itself, up to the hard one";
    let most = facts.open_files_hard.map(crate::connections_within);
    let found = match (facts.open_files_hard, most) {
        (Some(hard), Some(most)) => format!("hard limit {hard}: at most {most} connections"),
        _ => "unlimited".to_owned(),
    };
    let is_low = most.is_some_and(|most| most < FEW_CONNECTIONS);
    let remedy =
        "raise it: 'ulimit -Hn 65536' as root, LimitNOFILE= of a systemd unit, --ulimit nofile= of a container";
    MachineCheck::ok("open files", found, meaning).warning_if(is_low, remedy)
}

fn local_ports(facts: &MachineFacts) -> MachineCheck {
    let meaning = "connections to one address need a local port each; one that weir closes keeps it for 60 s";
    let Some(ports) = facts.tcp.local_ports else {
        return MachineCheck::ok("local ports", "unknown".into(), meaning);
    };
    let (per_s, reuse) = (ports / TIME_WAIT_S, facts.tcp.time_wait_reuse.unwrap_or(0));
    let found = match reuse {
        1 => format!("{ports}, reused after a second"),
        2 => format!("{ports}: {per_s} new connections/s to one remote address; reused after a second on loopback"),
        _ => format!("{ports}: {per_s} new connections/s to one address"),
    };
    let check = MachineCheck::ok("local ports", found, meaning);
    match ports {
        _ if reuse == 1 => check,
        0..20_000 => check.warning("sysctl -w net.ipv4.ip_local_port_range='1024 65000' net.ipv4.tcp_tw_reuse=1"),
        _ => check,
    }
}

fn time_wait(facts: &MachineFacts) -> MachineCheck {
    let meaning = "closed connections hold their local ports: without a free one, connects fail with EADDRNOTAVAIL";
    let Some(count) = facts.tcp.time_wait else {
        return MachineCheck::ok("TIME_WAIT", "unknown".into(), meaning);
    };
    let check = MachineCheck::ok("TIME_WAIT", format!("{count} connections"), meaning);
    let ports = facts.tcp.local_ports.unwrap_or(u64::from(u16::MAX));
    let is_many = count as f64 > ports as f64 * MANY_PORTS_FRACTION;
    check.warning_if(is_many, "wait a minute, keep connections alive, or set net.ipv4.tcp_tw_reuse=1")
}

fn backlog(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a service on this machine drops connections beyond its backlog: each costs its client a second";
    let found = facts.tcp.somaxconn.map_or_else(|| "unknown".to_owned(), |most| format!("net.core.somaxconn {most}"));
    let check = MachineCheck::ok("accept backlog", found, meaning);
    match facts.tcp.somaxconn {
        Some(0..SMALL_BACKLOG) => {
            check.note("for a service here: sysctl -w net.core.somaxconn=4096, and its own backlog")
        }
        _ => check,
    }
}

fn conntrack(facts: &MachineFacts) -> MachineCheck {
    let meaning = "a firewall that tracks connections drops packets of new ones when its table is full";
    let Some(table) = facts.tcp.conntrack else {
        return MachineCheck::ok("conntrack", "not in use".into(), meaning);
    };
    let is_full = table.used as f64 >= table.max as f64 * NEARLY_FULL_FRACTION;
    MachineCheck::ok("conntrack", format!("{} of {} entries", table.used, table.max), meaning)
        .warning_if(is_full, "raise net.netfilter.nf_conntrack_max, or keep connections alive")
}

fn certificates(facts: &MachineFacts) -> MachineCheck {
    let meaning = "without them https to public services fails; one with a CA of its own needs --cacert anyway";
    let found = facts.ca_certificates.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    let check = MachineCheck::ok("CA certificates", found, meaning);
    match facts.ca_certificates {
        Some(0) => check.warning("install ca-certificates, or name the service's CA with --cacert"),
        _ => check,
    }
}

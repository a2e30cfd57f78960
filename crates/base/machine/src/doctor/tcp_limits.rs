//! Limits of TCP on this machine, and how much of them is used.

use std::fs;

use serde::Serialize;

/// Table of the kernel with a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FilledTable {
    /// Number of entries.
    pub used: u64,
    /// Maximum number of entries.
    pub max: u64,
}

/// Limits of TCP; None where the system does not show one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TcpLimits {
    /// Number of local ports for outgoing connections to one address.
    pub local_ports: Option<u64>,
    /// Connections in TIME_WAIT, of both address families.
    pub time_wait: Option<u64>,
    /// `tcp_tw_reuse`: 0 never, 1 always, 2 on loopback.
    pub time_wait_reuse: Option<u64>,
    /// Maximum backlog of connections that a listener has not accepted yet.
    pub somaxconn: Option<u64>,
    /// Connections that the firewall tracks.
    pub conntrack: Option<FilledTable>,
}

impl TcpLimits {
    /// Limits and their use now.
    pub fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).ok();
        let number = |path: &str| text(path)?.trim().parse().ok();
        let conntrack = || {
            let [used, max] =
                ["count", "max"].map(|name| number(&format!("/proc/sys/net/netfilter/nf_conntrack_{name}")));
            Some(FilledTable { used: used?, max: max? })
        };
        Self {
            local_ports: text("/proc/sys/net/ipv4/ip_local_port_range").and_then(|range| port_count(&range)),
            time_wait: text("/proc/net/sockstat").and_then(|sockets| time_wait_count(&sockets)),
            time_wait_reuse: number("/proc/sys/net/ipv4/tcp_tw_reuse"),
            somaxconn: number("/proc/sys/net/core/somaxconn"),
            conntrack: conntrack(),
        }
    }
}

/// Number of ports of `ip_local_port_range`: the first and the last one.
pub(super) fn port_count(range: &str) -> Option<u64> {
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u16>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some(u64::from(last.checked_sub(first)?) + 1)
}

/// Connections in TIME_WAIT of `/proc/net/sockstat`: `TCP: inuse 5 orphan 0 tw 12 ...`. The line counts those of IPv6,
/// too.
pub(super) fn time_wait_count(sockets: &str) -> Option<u64> {
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut fields = line.split_ascii_whitespace().skip_while(|field| *field != "tw").skip(1);
    fields.next()?.parse().ok()
}

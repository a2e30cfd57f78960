//! Hosts of a route.

use std::fmt;

use super::read::DocumentNode;
use super::rewrite::is_authority;

/// Host that a route is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostMatch {
    /// This name, in lower case, without port and the root's dot.
    Exact(String),
    /// All names that end with this: `.example.org` for `*.example.org`.
    Suffix(String),
}

impl fmt::Display for HostMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Suffix(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// Parses a host, or a list of hosts.
pub(super) fn host_patterns(node: &DocumentNode<'_>) -> Vec<HostMatch> {
    let nodes = if node.value().is_array() { node.list().unwrap_or_default() } else { vec![node.clone()] };
    if nodes.is_empty() {
        node.error("empty list", r#"write it as ["example.org"], or leave it out for any host"#);
    }
    let mut hosts: Vec<HostMatch> = Vec::new();
    for node in &nodes {
        let Some(host) = host_pattern(node) else { continue };
        if hosts.contains(&host) {
            node.error(format!("duplicate \"{host}\""), "leave one out");
            continue;
        }
        hosts.push(host);
    }
    hosts
}

fn host_pattern(node: &DocumentNode<'_>) -> Option<HostMatch> {
    let text = node.string()?;
    let wildcard = text.strip_prefix("*.");
    let name = wildcard.unwrap_or(text);
    let port = name.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if port || name.contains('*') || !is_authority(name) {
        node.expected("host", r#"write a name such as "example.org" or "*.example.org", without a port"#);
    }
    // The root's dot is not part of the name.
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    Some(if wildcard.is_some() { HostMatch::Suffix(format!(".{name}")) } else { HostMatch::Exact(name) })
}

//! Parses lists of networks.

use super::read::DocumentNode;
use weir_base::fault::Fault;
use weir_server::Network;

/// Parses `["10.0.0.0/8", "::1"]`.
pub(super) fn networks(node: &DocumentNode<'_>) -> Vec<Network> {
    let network = |node: &DocumentNode<'_>| {
        let read = Network::parse(node.string()?);
        read.map_err(|Fault { what, remedy }| node.error(format!("{} {what}", node.display()), remedy)).ok()
    };
    node.list().unwrap_or_default().iter().filter_map(network).collect()
}

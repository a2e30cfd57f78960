//! Parses a route's `upgrades`: the protocols that a connection may switch to.

use http::HeaderValue;

use super::read::DocumentNode;
use weir_net::upgrade::carries_requests;

/// The protocols of a route that does not name any.
pub(super) fn default_upgrades() -> Vec<HeaderValue> {
    vec![HeaderValue::from_static("websocket")]
}

/// Parses `["websocket"]`; names are in lower case.
pub(super) fn upgrades(node: &DocumentNode<'_>) -> Vec<HeaderValue> {
    let mut protocols: Vec<HeaderValue> = Vec::new();
    for node in node.list().unwrap_or_default() {
        let Some(name) = node.string() else { continue };
        if carries_requests(name) {
            node.error(
                format!("{name:?} carries requests that no route, limit or header rule applies to"),
                "leave it out: the request is passed on without Upgrade",
            );
            continue;
        }
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._~+!/".contains(&byte);
        let protocol = HeaderValue::from_str(name).ok().filter(|_| !name.is_empty() && name.bytes().all(is_name));
        match protocol {
            None => node.expected("protocol", r#"write one in lower case, such as "websocket""#),
            Some(protocol) if protocols.contains(&protocol) => {
                node.error(format!("duplicate {name:?}"), "leave one out");
            }
            Some(protocol) => protocols.push(protocol),
        }
    }
    protocols
}

//! Captures of a route's path, by their names.

use super::problem::suggestion;
use super::read::DocumentNode;

/// Name of a capture of the route's path; an unknown one is a problem of the node.
pub(super) fn path_capture(node: &DocumentNode<'_>, captures: &[&str]) -> Option<String> {
    let name = node.string()?;
    if !captures.contains(&name) {
        let remedy = match captures {
            [] => "write it into the route's path, as {name}".to_owned(),
            _ => suggestion(name, captures),
        };
        node.error(format!("the route's path has no capture {{{name}}}"), remedy);
    }
    Some(name.to_owned())
}

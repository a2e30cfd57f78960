//! Requests as they are compared.

use std::collections::HashSet;

use weir_testing::{Seen, Server};

/// Headers of a connection, and those that name the program.
const UNCOMPARED: [&str; 5] = ["content-length", "connection", "transfer-encoding", "expect", "accept-encoding"];

/// Requests since the last call.
pub(super) fn new_requests(server: &Server, seen: &mut usize) -> Vec<Seen> {
    let all = server.seen();
    let new = all.get(*seen..).unwrap_or_default().to_vec();
    *seen = all.len();
    new
}

/// Method and target, headers in order of their names, and body; the boundary of a form is always the same.
pub(super) fn comparable(requests: &[Seen]) -> Vec<(String, Vec<String>, String)> {
    let uncompared: HashSet<&str> = UNCOMPARED.into_iter().collect();
    let shown = requests.iter().map(|request| {
        let boundary =
            request.header("content-type").and_then(|kind| kind.split_once("boundary=")).map(|(_, own)| own.to_owned());
        let same = |text: String| match &boundary {
            Some(boundary) if !boundary.is_empty() => text.replace(boundary.as_str(), "BOUNDARY"),
            _ => text,
        };
        let mut headers: Vec<String> = Vec::new();
        for line in request.head.lines().skip(1).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            let is_own = name == "user-agent" && (value.starts_with("curl/") || value.starts_with("weir/"));
            if !uncompared.contains(name.as_str()) && !is_own {
                headers.push(same(format!("{name}: {value}")));
            }
        }
        headers.sort();
        let line = request.line().trim_end_matches(" HTTP/1.1").to_owned();
        (line, headers, same(request.body.escape_ascii().to_string()))
    });
    shown.collect()
}

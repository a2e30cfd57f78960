//! Schemes of the URLs of a load.

use std::fmt;

/// Schemes of the URLs of a load, those of HTTP first.
const SCHEMES: [&str; 6] = ["http", "https", "grpc", "grpcs", "ws", "wss"];

/// Writes what is wrong with the scheme of a URL: it is unknown, or lacks a slash. It is empty where it may be a user.
pub(crate) fn unknown(f: &mut fmt::Formatter<'_>, url: &str, scheme: &str) -> fmt::Result {
    let lower = scheme.to_ascii_lowercase();
    if SCHEMES.contains(&lower.as_str()) {
        return write!(f, "invalid URL '{url}': no host behind '{lower}:'; write {lower}://host:port/path");
    }
    let [others @ .., last] = SCHEMES;
    let name = if scheme.is_empty() { String::new() } else { format!(" '{scheme}'") };
    write!(f, "invalid URL '{url}': unknown scheme{name}; choose {} or {last}", others.join(", "))
}

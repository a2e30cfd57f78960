//! Options of a recording as users write them.

use weir_net::target::Target;

/// Address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordAddress {
    /// Name or address of the host, without brackets.
    pub host: String,
    /// Port; 0 picks a free one.
    pub port: u16,
}

/// Parses `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`.
///
/// # Errors
/// Notations that are valid.
pub fn address(text: &str) -> Result<RecordAddress, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
    let host = if host.is_empty() { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
    match port.parse() {
        Ok(port) if is_whole => Ok(RecordAddress { host: host.to_owned(), port }),
        _ => Err("write it as 127.0.0.1:8888, [::1]:8888 or 8888".to_owned()),
    }
}

/// Upstream of a reverse proxy: a scheme, a host, and no path, which would be that of each request.
///
/// # Errors
/// What does not belong to it, or is invalid.
pub fn upstream(text: &str) -> Result<Target, String> {
    let target = Target::parse(text).map_err(|error| error.to_string())?;
    match (target.path.as_str(), &target.userinfo) {
        ("/", None) => Ok(target),
        (_, Some(_)) => Err("user and password belong to requests; write http://host:port".to_owned()),
        _ => Err("paths belong to requests; write http://host:port".to_owned()),
    }
}

/// Size of a body in bytes, from `512KiB`, `1MiB`, or bytes; at most 64 MiB.
///
/// # Errors
/// Sizes that are valid.
pub fn body_size(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = match lower.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => lower.split_at(at),
        None => (lower.as_str(), ""),
    };
    let factor = match unit.trim() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        _ => None,
    };
    let size = digits.parse::<usize>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    size.filter(|size| *size <= 64 << 20).ok_or_else(|| "write a size of at most 64MiB, e.g. 512KiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_upstreams_and_sizes_are_parsed() {
        let at = |host: &str, port| Ok(RecordAddress { host: host.to_owned(), port });
        assert_eq!(address("8888"), at("127.0.0.1", 8888));
        assert_eq!(address("[::1]:0"), at("::1", 0));
        assert!(address("::1").is_err() && address("h:x").is_err());
        assert!(upstream("http://h:80/").is_ok() && upstream("h:80").is_ok());
        assert!(upstream("http://h/api").is_err() && upstream("http://a:b@h").is_err() && upstream("ftp://h").is_err());
        assert_eq!(body_size("512KiB"), Ok(512 << 10));
        assert_eq!(body_size("0"), Ok(0));
        assert!(body_size("65MiB").is_err() && body_size("-1").is_err() && body_size("1GiB").is_err());
    }
}

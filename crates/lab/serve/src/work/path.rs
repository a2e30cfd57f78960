//! Paths at which the service responds, beside its own.

use std::str::FromStr;

/// A path, or all paths that begin with it: `/v1/orders`, `/v1/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkPath {
    start: String,
    is_open: bool,
}

impl WorkPath {
    /// Whether a request with this path is one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        if self.is_open { path.starts_with(&self.start) } else { path == self.start }
    }
}

/// By its text; an error names what to write instead.
impl FromStr for WorkPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let start = text.strip_suffix('*').unwrap_or(text);
        if !start.starts_with('/') || start.contains(['*', '?', '#']) {
            return Err("write e.g. /v1/orders, or /v1/* for all paths below /v1/".to_owned());
        }
        Ok(Self { start: start.to_owned(), is_open: start.len() < text.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_at_the_end_stands_for_all_that_follows() {
        let of = |text: &str| text.parse::<WorkPath>().unwrap();
        assert!(of("/v1/orders").has("/v1/orders") && !of("/v1/orders").has("/v1/orders/7"));
        assert!(of("/v1/*").has("/v1/orders/7") && of("/v1/*").has("/v1/") && !of("/v1/*").has("/v1"));
        assert!(of("/*").has("/"));
        for text in ["", "v1", "*", "/a*b", "/a?b=c", "/a#b", "/**"] {
            assert!(text.parse::<WorkPath>().is_err_and(|why| why.starts_with("write e.g. /v1/orders")), "{text}");
        }
    }
}

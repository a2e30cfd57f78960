//! Destinations of calls of gRPC, beside those of other requests to the same hosts.

use weir_request::url::HttpUrl;
use weir_scenario::plan::{OriginId, RequestOrigin};

/// First number of a destination of calls: those of other requests are fewer.
const FIRST_CALL_ORIGIN: u32 = 1 << 16;
/// Most destinations of a thread.
const MAX_ORIGINS: usize = 1024;

/// A destination of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallPlace {
    pub(super) origin: RequestOrigin,
    /// Number of its certificates.
    pub(super) channel: u32,
}

/// Destinations of the calls of a thread.
#[derive(Debug, Default)]
pub(super) struct CallOrigins(Vec<CallPlace>);

impl CallOrigins {
    /// Index of a destination, which is added if it is new; `None` if there are too many.
    pub(super) fn intern(&mut self, url: &HttpUrl, channel: u32) -> Option<OriginId> {
        let is_same = |known: &CallPlace| {
            let RequestOrigin { is_tls, host, port } = &known.origin;
            known.channel == channel && *port == url.port() && *is_tls == url.is_tls() && host == url.host()
        };
        let at = match self.0.iter().position(is_same) {
            Some(at) => at,
            None if self.0.len() >= MAX_ORIGINS => return None,
            None => {
                let origin = RequestOrigin { is_tls: url.is_tls(), host: url.host().to_owned(), port: url.port() };
                self.0.push(CallPlace { origin, channel });
                self.0.len() - 1
            }
        };
        Some(OriginId(FIRST_CALL_ORIGIN + u32::try_from(at).ok()?))
    }

    /// Destination of an index, if it is one of calls.
    pub(super) fn get(&self, id: OriginId) -> Option<&CallPlace> {
        self.0.get(id.0.checked_sub(FIRST_CALL_ORIGIN)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_differ_by_host_port_tls_and_certificates() {
        let mut origins = CallOrigins::default();
        let mut of = |url: &str, channel| origins.intern(&HttpUrl::parse(url.as_bytes()).expect("valid"), channel);
        let first = of("http://a:1/x", 0);
        assert_eq!(of("http://a:1/y", 0), first);
        for (url, channel) in [("http://a:2", 0), ("https://a:1", 0), ("http://b:1", 0), ("http://a:1", 1)] {
            assert_ne!(of(url, channel), first, "{url}");
        }
        let second = of("http://a:1", 1).expect("room");
        assert_eq!(origins.get(second).map(|place| place.channel), Some(1));
        assert_eq!(origins.get(OriginId(0)), None);
    }
}

//! Services that requests go to, by address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use http::uri::Authority;
use rustls::ClientConfig;
use weir_base::Nanos;
use weir_net::client::{ConnectOptions, Origin, Protocol};
use weir_net::target::Target;
use weir_net::tls::{Tls, TlsError, TlsOptions};

/// Services whose connections are kept.
const MAX_UPSTREAMS: usize = 1000;

/// Timeout of name resolution, connecting and TLS.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(30);

/// Host, port and TLS of a recorded service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ServicePlace {
    /// Whether it speaks TLS.
    pub(crate) tls: bool,
    /// Host without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Name in its certificate, if that is not the host.
    pub(crate) server_name: Option<String>,
}

impl ServicePlace {
    /// Place of an authority: `shop.example`, `[::1]:8080`; without a port that of the scheme.
    pub(crate) fn of(authority: &Authority, tls: bool) -> Option<Self> {
        let scheme = if tls { "https" } else { "http" };
        let Target { host, port, userinfo: None, .. } = Target::parse(&format!("{scheme}://{authority}")).ok()? else {
            return None;
        };
        Some(Self { tls, host, port, server_name: None })
    }

    /// Scheme and authority of its URLs.
    pub(crate) fn origin(&self) -> String {
        Target::of_host(self.tls, self.name(), self.port).origin()
    }

    /// Name by which hosts are chosen.
    pub(crate) fn name(&self) -> &str {
        self.server_name.as_ref().unwrap_or(&self.host)
    }
}

/// Origins of one service.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamOrigins {
    /// With the version of HTTP that both sides speak.
    pub(crate) auto: Arc<Origin>,
    /// With HTTP/1.1, which can switch to another protocol.
    pub(crate) http1: Arc<Origin>,
}

/// Services by place.
#[derive(Debug)]
pub(crate) struct Upstreams {
    origins: RefCell<HashMap<ServicePlace, Rc<UpstreamOrigins>>>,
    /// Trust in services; why there is none, if the system has no certificates.
    tls: Result<Arc<ClientConfig>, TlsError>,
}

impl Upstreams {
    /// Services that are trusted by these options.
    ///
    /// # Errors
    /// Files of the options that cannot be read. That the system has no certificates shows when one is needed.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let tls = match Tls::shared(options) {
            Err(error @ TlsError::NoRoots(_)) => Err(error),
            other => Ok(other?),
        };
        Ok(Self { origins: RefCell::default(), tls })
    }

    /// Origins of a service.
    ///
    /// # Errors
    /// Reason why it cannot be reached with TLS.
    pub(crate) fn get(&self, place: &ServicePlace) -> Result<Rc<UpstreamOrigins>, TlsError> {
        if let Some(origins) = self.origins.borrow().get(place) {
            return Ok(Rc::clone(origins));
        }
        let target = Target::of_host(place.tls, &place.host, place.port);
        let tls = match &self.tls {
            Ok(config) => Some(Arc::clone(config)),
            Err(error) if place.tls => return Err(error.clone()),
            Err(_) => None,
        };
        let options = ConnectOptions {
            tls,
            server_name: place.server_name.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            // A client that waits for an event may wait for hours; it ends the request by leaving.
            stall_timeout: Nanos::NEVER,
            ..ConnectOptions::default()
        };
        let http1 = ConnectOptions { protocol: Protocol::Http1, ..options.clone() };
        let origins = Rc::new(UpstreamOrigins {
            auto: Arc::new(Origin::new(&target, &options)?),
            http1: Arc::new(Origin::new(&target, &http1)?),
        });
        let mut all = self.origins.borrow_mut();
        if all.len() >= MAX_UPSTREAMS {
            // Connections in use stay; those of the others are closed by the client's next sweep.
            all.clear();
        }
        all.insert(place.clone(), Rc::clone(&origins));
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_port_of_its_scheme_and_an_origin_without_it() {
        for (authority, tls, expected, port) in [
            ("shop.example", true, "https://shop.example", 443),
            ("shop.example:443", true, "https://shop.example", 443),
            ("shop.example:443", false, "http://shop.example:443", 443),
            ("[::1]:8080", false, "http://[::1]:8080", 8080),
        ] {
            let place = ServicePlace::of(&authority.parse().unwrap(), tls).unwrap();
            assert_eq!((place.origin().as_str(), place.port), (expected, port));
        }
        assert_eq!(ServicePlace::of(&"user@shop.example".parse().unwrap(), false), None);
    }
}

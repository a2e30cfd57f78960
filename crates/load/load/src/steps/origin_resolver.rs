//! Addresses of the hosts that scenarios name.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use weir_net::target::{SocketAddress, Target, TargetError};
use weir_net::tls::{PemTexts, Tls, TlsError, TlsOptions};
use weir_scenario::plan::RequestOrigin;

use crate::address_rules::AddressRules;
use crate::http2::Http2Options;
use crate::options::Options;
use crate::origin_addresses::OriginAddresses;
use crate::plan::PlanError;

/// Addresses and TLS of an origin's requests.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedOrigin {
    /// Addresses; never empty.
    pub(crate) addresses: OriginAddresses,
    /// TLS, for https.
    pub(crate) tls: Option<Tls>,
    /// Whether its requests are calls of gRPC.
    pub(crate) is_for_calls: bool,
}

impl ResolvedOrigin {
    /// Origin of requests.
    pub(crate) fn new(addresses: OriginAddresses, tls: Option<Tls>) -> Self {
        Self { addresses, tls, is_for_calls: false }
    }

    /// The same of calls of gRPC, which HTTP/2 alone carries.
    pub(crate) fn for_calls(self) -> Self {
        Self { tls: self.tls.map(|tls| tls.offering_http2(false)), is_for_calls: true, ..self }
    }
}

/// Resolver of origins, with the options of the load that change the way to them.
#[derive(Clone, Debug)]
pub(crate) struct OriginResolver {
    connect_to: Option<String>,
    unix_socket: Option<PathBuf>,
    server_name: Option<String>,
    pub(super) rules: Option<AddressRules>,
    tls: Tls,
    options: TlsOptions,
    http2: Http2Options,
}

impl OriginResolver {
    pub(crate) fn new(options: &Options) -> Result<Self, PlanError> {
        Ok(Self {
            connect_to: options.connect_to.clone(),
            unix_socket: options.unix_socket.clone(),
            server_name: options.sni.clone(),
            rules: options.address_rules,
            // The name is replaced for each origin.
            tls: options.http2.offer(Tls::new("localhost", &options.tls)?),
            options: options.tls.clone(),
            http2: options.http2,
        })
    }

    /// Addresses of an origin, from the system's resolver.
    pub(crate) fn resolve(&self, origin: &RequestOrigin) -> Result<ResolvedOrigin, PlanError> {
        Ok(ResolvedOrigin::new(self.addresses(origin)?, self.tls_of(origin)?))
    }

    /// Addresses of an origin, which may take long.
    pub(super) fn addresses(&self, origin: &RequestOrigin) -> Result<OriginAddresses, PlanError> {
        let target = target_of(origin);
        let mut addresses = match &self.unix_socket {
            Some(path) => vec![SocketAddress::Unix(path.clone())],
            None => target.resolve(self.connect_to.as_deref())?,
        };
        if let Some(rules) = &self.rules {
            let inet = |address: &SocketAddress| match address {
                SocketAddress::Inet(address) => Some(*address),
                SocketAddress::Unix(_) => None,
            };
            let of_names: Vec<_> = addresses.iter().filter_map(inet).collect();
            if !of_names.is_empty() {
                addresses = rules.policy.taken(&of_names).into_iter().map(SocketAddress::Inet).collect();
            }
        }
        if addresses.is_empty() {
            return Err(TargetError::Resolve(target.host, "it has no address".into()).into());
        }
        let addresses = OriginAddresses::from(addresses);
        Ok(match &self.rules {
            Some(rules) => addresses.selected(rules.select),
            None => addresses,
        })
    }

    /// The address in place of those of the origin.
    pub(crate) fn at(&self, origin: &RequestOrigin, address: SocketAddress) -> Result<ResolvedOrigin, PlanError> {
        Ok(ResolvedOrigin::new(vec![address].into(), self.tls_of(origin)?))
    }

    /// An origin that is resolved, with certificates of its own if it has TLS.
    pub(crate) fn with_texts(
        &self,
        resolved: ResolvedOrigin,
        origin: &RequestOrigin,
        texts: &PemTexts,
    ) -> Result<ResolvedOrigin, PlanError> {
        let host = target_of(origin).host;
        let host = self.server_name.as_ref().unwrap_or(&host);
        let tls = resolved.tls.map(|_| Tls::with_texts(host, &self.options, texts)).transpose()?;
        Ok(ResolvedOrigin { tls: tls.map(|tls| self.http2.offer(tls)), ..resolved })
    }

    fn tls_of(&self, origin: &RequestOrigin) -> Result<Option<Tls>, PlanError> {
        let target = target_of(origin);
        let name = self.server_name.as_ref().unwrap_or(&target.host);
        let tls = target.tls.then(|| {
            let server = ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))?;
            Ok::<Tls, TlsError>(Tls { config: Arc::clone(&self.tls.config), name: server })
        });
        Ok(tls.transpose()?)
    }
}

/// Target of an origin's requests.
pub(crate) fn target_of(origin: &RequestOrigin) -> Target {
    Target::of_host(origin.is_tls, origin.host.trim_start_matches('[').trim_end_matches(']'), origin.port)
}

//! Parses an upstream's options for names: `resolve`, `resolver`, and URLs of SRV records.

use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::ServerName;

use super::read::{DocumentNode, DocumentTable};
use super::{HostConfig, ResolveInterval, UpstreamConfig, units};
use crate::dns::{DNS_PORT, DnsName};
use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_net::target::Target;
use weir_request::url::UrlError;

/// Maximum number of servers.
const MAX_RESOLVERS: usize = 8;

/// `resolve`: a time, or `"ttl"`.
pub(super) fn resolve(table: &DocumentTable<'_>) -> Option<ResolveInterval> {
    const REMEDY: &str = r#"write it as "30s", or as "ttl" for the times of DNS"#;
    let node = table.get("resolve")?;
    let text = node.value().as_str();
    if text == Some("ttl") {
        return Some(ResolveInterval::Ttl);
    }
    match text.and_then(units::time) {
        Some(Nanos::ZERO) => node.error("the time has to be above zero", REMEDY),
        Some(time) => return Some(ResolveInterval::Fixed(time)),
        None => node.expected("time", REMEDY),
    }
    None
}

/// `resolver`: addresses of DNS servers.
pub(super) fn resolver(table: &DocumentTable<'_>) -> Vec<SocketAddr> {
    let Some(node) = table.get("resolver") else { return Vec::new() };
    if table.get("resolve").is_none() {
        node.error("it has no effect without resolve", r#"write resolve = "ttl", or leave it out"#);
    }
    let Some(list) = node.list() else { return Vec::new() };
    if list.is_empty() {
        node.error("empty list", r#"write it as ["10.0.0.2:53"], or leave it out for those of /etc/resolv.conf"#);
    }
    if list.len() > MAX_RESOLVERS {
        node.error(format!("{} servers are too many", list.len()), format!("give {MAX_RESOLVERS} at most"));
    }
    list.iter().filter_map(server).collect()
}

fn server(node: &DocumentNode<'_>) -> Option<SocketAddr> {
    let text = node.string()?;
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = match inner.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, DNS_PORT)),
        Err(_) => text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0),
    };
    if address.is_none() {
        node.expected("address of a DNS server", r#"write it as "10.0.0.2", "10.0.0.2:53" or "[::1]:53""#);
    }
    address
}

/// Reports `resolve` without a name to resolve, and SRV records without `resolve`.
pub(super) fn check_names(table: &DocumentTable<'_>, read: &UpstreamConfig) {
    match table.get("resolve") {
        Some(node) if !read.hosts.is_empty() && !read.hosts.iter().any(HostConfig::has_name) => {
            node.warn("none of the urls has a name to resolve", "leave it out");
        }
        Some(_) => {}
        None => {
            if let Some(host) = read.hosts.iter().find(|host| host.service_name().is_some())
                && let Some(node) = table.get("urls")
            {
                let what = format!("{:?} has SRV records, which nothing resolves", host.url);
                node.error(what, r#"write resolve = "ttl", too"#);
            }
        }
    }
}

/// Checks a host whose name begins with `_`, which is one of SRV records (RFC 2782).
///
/// # Errors
/// The fault, a text to follow the URL.
pub(super) fn service_host(host: &str, authority: &str) -> Result<(), Fault> {
    if !host.starts_with('_') {
        return Ok(());
    }
    let is_valid = domain_of_service(host).is_some_and(|domain| ServerName::try_from(domain).is_ok());
    if !is_valid || DnsName::new(host).is_none() {
        let remedy = r#"write it as "http://_SERVICE._PROTOCOL.DOMAIN", e.g. "http://_http._tcp.api.example""#;
        return Err(Fault::new("has an invalid name of SRV records", remedy));
    }
    if authority.len() != host.len() {
        return Err(Fault::new("has a port, and SRV records have their own", "leave it out"));
    }
    Ok(())
}

/// Domain of a name of SRV records.
fn domain_of_service(host: &str) -> Option<&str> {
    let is_label = |label: &&str| label.len() > 1 && label.starts_with('_');
    let (service, rest) = host.split_once('.')?;
    let (protocol, domain) = rest.split_once('.')?;
    [service, protocol].iter().all(is_label).then_some(domain).filter(|domain| !domain.starts_with('_'))
}

impl HostConfig {
    /// Whether the host is a name, which has addresses, and not an address or a socket.
    pub(crate) fn has_name(&self) -> bool {
        let is_address = Target::parse(&self.url).is_ok_and(|target| target.host.parse::<IpAddr>().is_ok());
        self.socket.is_none() && !is_address
    }

    /// Name of the SRV records, if the host has such.
    pub(crate) fn service_name(&self) -> Option<&str> {
        let (_, host) = self.url.split_once("://")?;
        domain_of_service(host).map(|_| host)
    }

    /// Target of the requests: of SRV records their domain, which is what the certificate has to name. A target's name
    /// comes from DNS, which may be forged, and proves nothing (RFC 6125, section 6.2.1).
    ///
    /// # Errors
    /// The URL is not valid.
    pub(crate) fn target(&self) -> Result<Target, UrlError> {
        let (Some(service), Some((scheme, _))) = (self.service_name(), self.url.split_once("://")) else {
            return Target::parse(&self.url);
        };
        Target::parse(&format!("{scheme}://{}", domain_of_service(service).unwrap_or(service)))
    }

    /// Host and port as they are configured.
    pub(crate) fn authority(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |(_, authority)| authority)
    }

    /// Name that is resolved.
    pub(crate) fn lookup_name(&self) -> String {
        let of_target = || self.target().map_or_else(|_| self.authority().to_owned(), |target| target.host);
        self.service_name().map_or_else(of_target, str::to_owned)
    }
}

impl UpstreamConfig {
    /// Whether the gateway asks DNS servers itself for the name of a host.
    pub(crate) fn asks_dns(&self, host: &HostConfig) -> bool {
        let is_own = self.resolve == Some(ResolveInterval::Ttl) || !self.resolver.is_empty();
        host.has_name() && self.resolve.is_some() && (is_own || host.service_name().is_some())
    }
}

//! Parses `[[listeners]]`, and other addresses to listen on.

use std::path::PathBuf;

use super::file;
use super::proxies::networks;
use super::read::{DocumentNode, DocumentTable};
use weir_server::tls::{CertificateFiles, ClientAuth, MinTlsVersion, ServerTls, ServerTlsError, ServerTlsOptions};
use weir_server::{ListenAddress, Proxies};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Unique name, by which routes refer to it; the address if it has none.
    pub name: String,
    /// The address.
    pub address: ListenAddress,
    /// TLS; None without.
    pub tls: Option<ServerTlsOptions>,
    /// Networks of the proxies whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol: Proxies,
    /// Whether all requests are redirected to HTTPS, and at which port.
    pub redirect_to_https: Option<u16>,
    /// Maximum number of its connections; None for that of the gateway alone.
    pub max_connections: Option<usize>,
    /// Maximum number of its connections from one address that is not a trusted proxy's.
    pub max_connections_per_address: Option<usize>,
}

impl ListenerConfig {
    /// Name of the listener of a configuration without listeners.
    pub const ONLY: &str = "default";
}

/// Port of HTTPS in URLs without one.
const HTTPS_PORT: u16 = 443;

const ADDRESS_REMEDY: &str = r#"write it as "127.0.0.1:8080", "[::1]:8080", "unix:/PATH" or "systemd:NAME""#;

/// Parses an address; the path of a Unix socket is relative to the configuration.
pub(super) fn listen_address(node: &DocumentNode<'_>) -> Option<ListenAddress> {
    let address = ListenAddress::parse(node.string()?);
    if address.is_none() {
        node.expected("address", ADDRESS_REMEDY);
    }
    match address? {
        ListenAddress::Unix(path) => Some(ListenAddress::Unix(node.folder().join(path))),
        other => Some(other),
    }
}

/// Parses all listeners; each has a name of its own.
pub(super) fn listeners(root: &DocumentTable<'_>) -> Vec<ListenerConfig> {
    let Some(node) = root.get("listeners") else { return Vec::new() };
    if node.is_table() {
        node.expected("list of listeners", "write its head as [[listeners]]");
        return Vec::new();
    }
    let nodes = node.list().unwrap_or_default();
    if nodes.is_empty() {
        node.error("empty list", r#"write [[listeners]] with address = "0.0.0.0:8080", or leave it out"#);
    }
    if let Some(listen) = root.get("listen") {
        listen.error("listen and listeners exclude each other", "write it as one more of [[listeners]]");
    }
    let mut all: Vec<ListenerConfig> = Vec::new();
    for node in &nodes {
        let Some(listener) = listener(node) else { continue };
        // The system gives each port 0 a port of its own.
        let is_free = matches!(listener.address, ListenAddress::Tcp(_, 0));
        if !is_free && all.iter().any(|other| other.address == listener.address) {
            node.error(format!("duplicate address {}", listener.address), "give each listener another one");
        } else if all.iter().any(|other| other.name == listener.name) {
            node.error(format!("duplicate name {:?}", listener.name), "give each listener a name of its own");
        }
        all.push(listener);
    }
    all
}

fn listener(node: &DocumentNode<'_>) -> Option<ListenerConfig> {
    let table = node.table()?;
    let address = table.get("address");
    if address.is_none() {
        table.error("address missing", r#"write address = "0.0.0.0:8080""#);
    }
    let address = address.as_ref().and_then(listen_address);
    let name = table.get("name").and_then(|node| name(&node));
    let (tls_node, redirect_node) = (table.get("tls"), table.get("redirect_to_https"));
    let tls = tls_node.as_ref().and_then(|node| tls(&node.table()?));
    let redirect_to_https = redirect_node.as_ref().and_then(redirect);
    if let (Some(_), Some(node)) = (&tls_node, &redirect_node) {
        node.error("redirect_to_https on a listener with TLS", "leave it out; it is for a listener without");
    }
    let proxy_protocol = table.get("proxy_protocol").map(|node| networks(&node));
    let max_connections = table.get("max_connections").and_then(|node| connections(&node));
    let max_connections_per_address = table.get("max_connections_per_address").and_then(|node| connections(&node));
    table.check_unknown_keys();
    let address = address?;
    Some(ListenerConfig {
        name: name.unwrap_or_else(|| address.to_string()),
        address,
        tls,
        proxy_protocol: Proxies::new(proxy_protocol.unwrap_or_default()),
        redirect_to_https,
        max_connections,
        max_connections_per_address,
    })
}

fn connections(node: &DocumentNode<'_>) -> Option<usize> {
    node.integer(1..=10_000_000).and_then(|max| usize::try_from(max).ok())
}

/// Names become log fields and words of routes, so they are simple.
fn name(node: &DocumentNode<'_>) -> Option<String> {
    let text = node.string()?;
    let is_simple = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if text.is_empty() || text.len() > 64 || !is_simple {
        node.expected("name", "take up to 64 letters, digits, \"-\" and \"_\"");
    }
    Some(text.to_owned())
}

/// Parses `true`, `false`, or the port that clients find HTTPS at.
fn redirect(node: &DocumentNode<'_>) -> Option<u16> {
    if node.is_integer() {
        return node.integer(1..=u64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok());
    }
    match node.as_boolean() {
        Some(is_on) => is_on.then_some(HTTPS_PORT),
        None => {
            node.expected("value", "write true, or the port of HTTPS in the new URL");
            None
        }
    }
}

fn tls(table: &DocumentTable<'_>) -> Option<ServerTlsOptions> {
    let certificates_node = table.get("certificates");
    let nodes = certificates_node.as_ref().and_then(DocumentNode::list).unwrap_or_default();
    if certificates_node.as_ref().is_none_or(|node| node.value().as_array().is_some_and(|list| list.is_empty())) {
        table.error("certificates missing", r#"write certificates = [{ cert = "site.pem", key = "site-key.pem" }]"#);
    }
    let client_ca = table.get("client_ca").and_then(|node| path(&node));
    let auth_node = table.get("client_auth");
    let words = [("required", ClientAuth::Required), ("optional", ClientAuth::Optional)];
    let client_auth = auth_node.as_ref().and_then(|node| node.choice(&words)).unwrap_or_default();
    if let Some(node) = auth_node.filter(|_| table.get("client_ca").is_none()) {
        node.error("client_auth without client_ca", "give client_ca, too: the CA certificates to verify clients by");
    }
    let words = [("1.2", MinTlsVersion::Tls12), ("1.3", MinTlsVersion::Tls13)];
    let min_version = table.get("min_version").and_then(|node| node.choice(&words)).unwrap_or_default();
    table.check_unknown_keys();
    let tables: Vec<Option<DocumentTable<'_>>> = nodes.iter().map(DocumentNode::table).collect();
    let parsed: Vec<Option<CertificateFiles>> =
        tables.iter().map(|table| table.as_ref().and_then(certificate)).collect();
    let is_whole = parsed.iter().all(Option::is_some);
    let certificates: Vec<CertificateFiles> = parsed.into_iter().flatten().collect();
    let options = ServerTlsOptions { certificates, client_ca, client_auth, min_version };
    if is_whole && !options.certificates.is_empty() {
        report_files(&options, table, &tables);
    }
    Some(options)
}

/// Reports errors of the files, at their keys.
fn report_files(options: &ServerTlsOptions, table: &DocumentTable<'_>, certificates: &[Option<DocumentTable<'_>>]) {
    let of = |index: Option<usize>| index.and_then(|index| certificates.get(index)?.as_ref()).unwrap_or(table);
    match ServerTls::new(options.clone()).err() {
        None => {}
        Some(ServerTlsError::File(role, index, path, why)) => {
            let what = format!("{}: {}", path.display(), file::without_number(&why));
            match of(index).get(role) {
                Some(node) => node.error(what, ""),
                None => of(index).error(what, ""),
            }
        }
        Some(ServerTlsError::Mismatch(index, why)) => of(Some(index)).error(
            format!("cert and key do not match: {why}"),
            "give the key of the first certificate in cert, which is the server's own",
        ),
        Some(error @ ServerTlsError::System(_)) => table.error(error.to_string(), ""),
    }
}

fn certificate(table: &DocumentTable<'_>) -> Option<CertificateFiles> {
    let (cert, key, ocsp) = (table.get("cert"), table.get("key"), table.get("ocsp"));
    table.check_unknown_keys();
    if cert.is_none() || key.is_none() {
        table.error("cert and key belong together", r#"write { cert = "site.pem", key = "site-key.pem" }"#);
    }
    let ocsp = match &ocsp {
        Some(node) => Some(path(node)?),
        None => None,
    };
    Some(CertificateFiles { cert: path(&cert?)?, key: path(&key?)?, ocsp })
}

/// A file relative to the configuration; None, with an error, if it cannot be read.
fn path(node: &DocumentNode<'_>) -> Option<PathBuf> {
    let path = node.folder().join(node.string()?);
    match file::read(&path) {
        Ok(_) => Some(path),
        Err(why) => {
            node.error(format!("cannot read {}: {why}", path.display()), "");
            None
        }
    }
}

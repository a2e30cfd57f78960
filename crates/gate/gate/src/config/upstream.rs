//! Parses `[upstreams.NAME]`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rustls::pki_types::ServerName;

use super::culprits::culprits;
use super::key_source::key_source;
use super::problem::suggestion;
use super::read::{DocumentNode, DocumentTable, NamedNode};
use super::upstream_names::{check_names, resolve, resolver, service_host};
use super::{HostConfig, UpstreamConfig, file, health, protection};
use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_net::client::{Http2Limits, Protocol, ProxyVersion};
use weir_net::target::Target;
use weir_net::tls::{Tls, TlsError, TlsOptions};
use weir_request::url_text::UrlText;
use weir_resilience::admission::AdmissionConfig;
use weir_resilience::upstream::client_throttle::ThrottleRule;
use weir_resilience::upstream::hosts::{BalancePolicy, MAX_HOSTS, OutlierRule};

/// Maximum of connections and of failures in a row.
const MAX_COUNT: u64 = 1_000_000;
/// Maximum of requests per connection.
const MAX_CONNECTION_REQUESTS: u64 = 1_000_000_000;
/// Maximum load of a host with consistent hashing, in percent of its part; Google's and HAProxy's usual one.
const DEFAULT_MAX_LOAD_PERCENT: u32 = 125;
/// Windows of flow control, in bytes; the maximum is that of RFC 9113 section 6.9.1.
const WINDOW_BYTES: RangeInclusive<u64> = 1024..=(1 << 31) - 1;

pub(super) fn upstream(named: &NamedNode<'_>) -> Option<UpstreamConfig> {
    let table = named.node.table()?;
    let mut read = UpstreamConfig::new(named.key);
    match table.get("urls") {
        Some(node) => read.hosts = hosts(&node),
        None => table.error("urls missing", r#"write urls = ["http://HOST:PORT"]"#),
    }
    if let Some(node) = table.get("protocol") {
        let words = [("auto", Protocol::Auto), ("http1", Protocol::Http1), ("http2", Protocol::Http2)];
        read.protocol = node.choice(&words).unwrap_or_default();
    }
    read.http2 = http2_limits(&table, read.protocol);
    if let Some(node) = table.get("balance") {
        let hash = BalancePolicy::ConsistentHash { max_load_percent: DEFAULT_MAX_LOAD_PERCENT };
        let words = [
            ("round-robin", BalancePolicy::RoundRobin),
            ("least-in-flight", BalancePolicy::LeastInFlight),
            ("consistent-hash", hash),
        ];
        read.balance = node.choice(&words).unwrap_or_default();
    }
    consistent_hash(&table, &mut read);
    let time = |key| table.get(key).and_then(|node| node.time());
    (read.resolve, read.resolver) = (resolve(&table), resolver(&table));
    (read.slow_start, read.max_connection_age) = (time("slow_start"), time("max_connection_age"));
    read.max_connection_requests =
        table.get("max_connection_requests").and_then(|node| node.integer(1..=MAX_CONNECTION_REQUESTS));
    check_names(&table, &read);
    if let Some(time) = table.get("connect_timeout").and_then(|node| node.time()) {
        read.connect_timeout = time;
    }
    if let Some(time) = table.get("stall_timeout").and_then(|node| node.time()) {
        read.stall_timeout = time;
    }
    let limit = |node: &DocumentNode<'_>| node.integer(1..=MAX_COUNT).map(|number| number as usize);
    read.max_connections = table.get("max_connections").and_then(|node| limit(&node));
    read.proxy_protocol = proxy_protocol(&table);
    read.admission = protection::upstream_admission(&table);
    read.breaker = table.get("breaker").as_ref().and_then(protection::breaker);
    read.culprits = table.get("shed_culprits").and_then(|node| culprits(&node, read.admission.is_some()));
    if let Some(node) = table.get("throttle") {
        read.throttle = protection::throttle(&node);
    }
    if let Some(time) = table.get("idle_timeout").and_then(|node| node.time()) {
        read.idle_timeout = time;
    }
    if let Some(node) = table.get("tls") {
        if let Some(tls) = node.table() {
            (read.tls, read.server_name) = certificates(&tls);
        }
        if !read.hosts.is_empty() && !read.hosts.iter().any(|host| host.url.starts_with("https:")) {
            node.warn("none of the urls is https", "write them as https://, or leave it out");
        }
    }
    if let Some(health) = table.get("health").and_then(|node| node.table()) {
        (read.health, read.health_check) = health::health(&health);
    }
    table.check_unknown_keys();
    Some(read)
}

/// `hash_by` and `max_load`, which belong to `balance = "consistent-hash"`.
fn consistent_hash(table: &DocumentTable<'_>, read: &mut UpstreamConfig) {
    let (hash_by, max_load) = (table.get("hash_by"), table.get("max_load"));
    if let BalancePolicy::ConsistentHash { max_load_percent } = &mut read.balance {
        if let Some(load) = max_load.and_then(|node| node.number(1.0..=100.0)) {
            *max_load_percent = (load * 100.0).round() as u32;
        }
        match hash_by {
            Some(node) => read.hash_by = key_source(&node, false),
            None => table.error(
                "hash_by missing",
                r#"write hash_by = { header = "x-user" }, { cookie = "session" } or "address""#,
            ),
        }
        return;
    }
    for node in hash_by.iter().chain(&max_load) {
        node.error("only for consistent hashing", r#"write balance = "consistent-hash", or leave it out"#);
    }
}

/// Version of the PROXY protocol. A connection is for one client then, so there is nothing to keep or to limit.
fn proxy_protocol(table: &DocumentTable<'_>) -> Option<ProxyVersion> {
    let node = table.get("proxy_protocol")?;
    let version = node.choice(&[("v1", ProxyVersion::V1), ("v2", ProxyVersion::V2)]);
    for key in ["max_connections", "max_connection_requests", "max_connection_age"] {
        if let Some(node) = table.get(key) {
            let what = format!("{key} and proxy_protocol exclude each other: each attempt has a connection of its own");
            node.error(what, "write max_in_flight instead, or leave it out");
        }
    }
    version
}

/// Limits of connections with HTTP/2; the names are those of `weir load`.
fn http2_limits(table: &DocumentTable<'_>, protocol: Protocol) -> Http2Limits {
    let (streams, window) = (table.get("streams"), table.get("h2_window"));
    if protocol == Protocol::Http1 {
        for node in streams.iter().chain(&window) {
            node.warn("it is for HTTP/2, and protocol is \"http1\"", "leave it out");
        }
    }
    Http2Limits {
        streams: streams.and_then(|node| node.integer(1..=MAX_COUNT)).map(|streams| streams as usize),
        window_bytes: window.and_then(|node| node.integer(WINDOW_BYTES)).and_then(|bytes| u32::try_from(bytes).ok()),
    }
}

impl UpstreamConfig {
    /// An upstream with defaults and without hosts.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            hosts: Vec::new(),
            protocol: Protocol::default(),
            http2: Http2Limits::default(),
            proxy_protocol: None,
            balance: BalancePolicy::default(),
            connect_timeout: Nanos::from_secs(5),
            stall_timeout: Nanos::from_secs(60),
            max_connections: None,
            max_connection_requests: None,
            max_connection_age: None,
            hash_by: None,
            resolve: None,
            resolver: Vec::new(),
            slow_start: None,
            admission: Some(AdmissionConfig::default()),
            breaker: None,
            throttle: Some(ThrottleRule::default()),
            culprits: None,
            idle_timeout: Nanos::from_secs(60),
            tls: TlsOptions::default(),
            server_name: None,
            health: OutlierRule::default(),
            health_check: None,
        }
    }
}

fn hosts(node: &DocumentNode<'_>) -> Vec<HostConfig> {
    let Some(list) = node.list() else { return Vec::new() };
    if list.is_empty() {
        node.error("empty list", r#"write it as ["http://HOST:PORT"]"#);
    }
    if list.len() > MAX_HOSTS {
        node.error(format!("{} hosts are too many", list.len()), format!("give {MAX_HOSTS} at most"));
    }
    let mut hosts: Vec<HostConfig> = Vec::new();
    for node in &list {
        let Some(host) = one_host(node) else { continue };
        if hosts.iter().any(|it| (&it.url, &it.socket) == (&host.url, &host.socket)) {
            node.warn("duplicate host", "give it a weight instead");
        }
        hosts.push(host);
    }
    hosts
}

fn one_host(node: &DocumentNode<'_>) -> Option<HostConfig> {
    if !node.is_table() {
        return node.string().and_then(|text| parse_host(node, text, 1));
    }
    let table = node.table()?;
    let weight = table.get("weight").and_then(|node| node.integer(1..=1000)).unwrap_or(1);
    let url = table.get("url");
    table.check_unknown_keys();
    let Some(url) = url else {
        table.error("url missing", r#"write it as { url = "http://HOST:PORT", weight = 2 }"#);
        return None;
    };
    let text = url.string()?;
    parse_host(&url, text, u32::try_from(weight).unwrap_or(1))
}

fn parse_host(node: &DocumentNode<'_>, text: &str, weight: u32) -> Option<HostConfig> {
    match host(text, node.folder()) {
        Ok(host) => Some(HostConfig { weight, ..host }),
        Err(Fault { what, remedy }) => {
            // A password must not be printed.
            let shown = if text.contains('@') { "the URL".to_owned() } else { node.display() };
            node.error(format!("{shown} {what}"), remedy);
            None
        }
    }
}

/// Parses `http://host:port`, `https://host:port` or `unix:/path`.
///
/// # Errors
/// The fault, a text to follow the URL.
pub(super) fn host(text: &str, folder: &Path) -> Result<HostConfig, Fault> {
    const HOST_REMEDY: &str = r#"write it as "http://HOST:PORT", "https://HOST:PORT" or "unix:/PATH""#;
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() || path.contains('\0') {
            return Err(Fault::new("has no path of a socket", HOST_REMEDY));
        }
        return Ok(HostConfig { url: "http://localhost".into(), socket: Some(folder.join(path)), weight: 1 });
    }
    let UrlText { scheme, authority, after_authority: path, .. } = UrlText::of(text);
    let target = Target::parse(text).ok().zip(scheme);
    let (target, scheme) = target.ok_or_else(|| Fault::new("is not a URL", HOST_REMEDY))?;
    if target.userinfo.is_some() {
        let remedy = "leave them out, and set the header authorization in a route's rewrite.set";
        return Err(Fault::new("has a user or a password", remedy));
    }
    if !matches!(path, "" | "/") {
        let remedy = "leave it out, and write a route's rewrite.path";
        return Err(Fault::new(format!("has a path ({path:?})"), remedy));
    }
    service_host(&target.host, authority)?;
    if !target.host.starts_with('_') && ServerName::try_from(target.host.as_str()).is_err() {
        return Err(Fault::new("has an invalid host", HOST_REMEDY));
    }
    let scheme = scheme.to_ascii_lowercase();
    // As it is written, since it is a name in metrics and logs.
    let authority = if authority.is_ascii() { authority.to_owned() } else { target.host_header() };
    Ok(HostConfig { url: format!("{scheme}://{authority}"), socket: None, weight: 1 })
}

fn certificates(table: &DocumentTable<'_>) -> (TlsOptions, Option<String>) {
    let mut unreadable = false;
    let mut path = |key| -> Option<PathBuf> {
        let node = table.get(key)?;
        let path = node.folder().join(node.string()?);
        if let Err(why) = file::read(&path) {
            node.error(format!("cannot read {}: {why}", path.display()), "");
            unreadable = true;
        }
        Some(path)
    };
    let (cacert, cert, key) = (path("cacert"), path("cert"), path("cert_key"));
    let insecure = table.get("insecure").and_then(|node| node.boolean()).unwrap_or(false);
    let server_name = table.get("server_name").and_then(|node| {
        let name = node.string()?;
        if ServerName::try_from(name).is_err() {
            node.expected("name for a certificate", r#"write it as "example.org""#);
        }
        Some(name.to_owned())
    });
    table.check_unknown_keys();
    let options = TlsOptions { cacert, cert, key, insecure, ..TlsOptions::default() };
    if unreadable {
        return (options, server_name);
    }
    match Tls::shared(&options) {
        Ok(_) | Err(TlsError::Name(_) | TlsError::Text(..) | TlsError::Suite(..)) => {}
        Err(TlsError::IncompletePair) => table.error("cert and cert_key belong together", "give both"),
        Err(TlsError::Mismatch(why)) => table.error(format!("cert and cert_key do not match: {why}"), ""),
        Err(TlsError::File(_, path, why)) => table.error(format!("{}: {why}", path.display()), "give a PEM file"),
        Err(TlsError::NoRoots(why)) => {
            // The configuration may be meant for another machine.
            table.warn(
                format!("this machine has no CA certificates ({why})"),
                "install ca-certificates, or give cacert",
            );
        }
    }
    (options, server_name)
}

/// Reports an unknown upstream or policy, with the nearest known name as remedy.
pub(super) fn unknown(node: &DocumentNode<'_>, kind: &str, tables: &str, given: &str, known: &[&str]) {
    let remedy = if known.is_empty() { format!("write a table [{tables}.{given}]") } else { suggestion(given, known) };
    node.error(format!("unknown {kind} {}", node.display()), remedy);
}

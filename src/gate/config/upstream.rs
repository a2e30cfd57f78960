//! Reads `[upstreams.NAME]`.

use std::path::{Path, PathBuf};

use rustls::pki_types::ServerName;

use super::problem::meant;
use super::read::{Named, Node, Table};
use super::{Check, HostConfig, UpstreamConfig, file, load};
use crate::decide::Nanos;
use crate::decide::admit::Terms;
use crate::decide::hosts::{Balance, Health, MOST_HOSTS};
use crate::decide::throttle::ThrottleRule;
use crate::http::client::Protocol;
use crate::http::target::Target;
use crate::http::tls::{Tls, TlsError, TlsOptions};

/// For connections, and failures.
const MOST: u64 = 1_000_000;

pub(super) fn upstream(named: &Named<'_>) -> Option<UpstreamConfig> {
    let table = named.node.table()?;
    let notes = named.node.notes();
    let mut read = UpstreamConfig::new(named.key);
    match table.get("urls") {
        Some(node) => read.hosts = hosts(&node),
        None => table.wrong("it has no urls", r#"write urls = ["http://HOST:PORT"]"#),
    }
    if let Some(node) = table.get("protocol") {
        let words = [("auto", Protocol::Auto), ("http1", Protocol::Http1), ("http2", Protocol::Http2)];
        read.protocol = node.choice(&words).unwrap_or_default();
    }
    if let Some(node) = table.get("balance") {
        let words = [("round-robin", Balance::RoundRobin), ("least-in-flight", Balance::LeastInFlight)];
        read.balance = node.choice(&words).unwrap_or_default();
    }
    if let Some(time) = table.get("connect_timeout").and_then(|node| node.time()) {
        read.connect_timeout = time;
    }
    if let Some(time) = table.get("stall_timeout").and_then(|node| node.time()) {
        read.stall_timeout = time;
    }
    let limit = |node: &Node<'_>| node.whole(1..=MOST).map(|number| number as usize);
    read.max_connections = table.get("max_connections").and_then(|node| limit(&node));
    read.limit = load::of_upstream(&table);
    read.breaker = table.get("breaker").as_ref().and_then(load::breaker);
    if let Some(node) = table.get("throttle") {
        read.throttle = load::throttle(&node);
    }
    if let Some(time) = table.get("keep_idle").and_then(|node| node.time()) {
        read.keep_idle = time;
    }
    if let Some(node) = table.get("tls") {
        if let Some(tls) = node.table() {
            (read.tls, read.server_name) = certificates(&tls, notes.folder);
        }
        if !read.hosts.is_empty() && !read.hosts.iter().any(|host| host.url.starts_with("https:")) {
            node.odd("none of the urls is https", "write them as https://, or leave it out");
        }
    }
    if let Some(health) = table.get("health").and_then(|node| node.table()) {
        (read.health, read.check) = well(&health);
    }
    table.close();
    Some(read)
}

impl UpstreamConfig {
    /// An upstream without hosts yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            hosts: Vec::new(),
            protocol: Protocol::default(),
            balance: Balance::default(),
            connect_timeout: Nanos::from_secs(5),
            stall_timeout: Nanos::from_secs(60),
            max_connections: None,
            limit: Some(Terms::default()),
            breaker: None,
            throttle: Some(ThrottleRule::default()),
            keep_idle: Nanos::from_secs(60),
            tls: TlsOptions::default(),
            server_name: None,
            health: Health::default(),
            check: None,
        }
    }
}

fn hosts(node: &Node<'_>) -> Vec<HostConfig> {
    let Some(list) = node.list() else { return Vec::new() };
    if list.is_empty() {
        node.wrong("there is no host in it", r#"write it as ["http://HOST:PORT"]"#);
    }
    if list.len() > MOST_HOSTS {
        node.wrong(format!("{} hosts are too many", list.len()), format!("give {MOST_HOSTS} at most"));
    }
    let mut hosts: Vec<HostConfig> = Vec::new();
    for node in &list {
        let Some(host) = one_host(node) else { continue };
        if hosts.iter().any(|it| (&it.url, &it.socket) == (&host.url, &host.socket)) {
            node.odd("it is there twice", "give it a weight instead");
        }
        hosts.push(host);
    }
    hosts
}

fn one_host(node: &Node<'_>) -> Option<HostConfig> {
    if !node.is_table() {
        return node.string().and_then(|text| told(node, text, 1));
    }
    let table = node.table()?;
    let weight = table.get("weight").and_then(|node| node.whole(1..=1000)).unwrap_or(1);
    let url = table.get("url");
    table.close();
    let Some(url) = url else {
        table.wrong("it has no url", r#"write it as { url = "http://HOST:PORT", weight = 2 }"#);
        return None;
    };
    let text = url.string()?;
    told(&url, text, u32::try_from(weight).unwrap_or(1))
}

fn told(node: &Node<'_>, text: &str, weight: u32) -> Option<HostConfig> {
    match host(text, node.notes().folder) {
        Ok(host) => Some(HostConfig { weight, ..host }),
        Err((what, remedy)) => {
            // A password is nothing for a terminal.
            let shown = if text.contains('@') { "the URL".to_owned() } else { node.shown() };
            node.wrong(format!("{shown} {what}"), remedy);
            None
        }
    }
}

/// Reads `http://host:port`, `https://host:port` or `unix:/path`.
///
/// # Errors
/// What is wrong (to follow the text), and what to write.
pub(super) fn host(text: &str, folder: &Path) -> Result<HostConfig, (String, String)> {
    const REMEDY: &str = r#"write it as "http://HOST:PORT", "https://HOST:PORT" or "unix:/PATH""#;
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() || path.contains('\0') {
            return Err(("names no socket".into(), REMEDY.into()));
        }
        return Ok(HostConfig { url: "http://localhost".into(), socket: Some(folder.join(path)), weight: 1 });
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(("is no URL".into(), REMEDY.into()));
    };
    let target = Target::parse(text).map_err(|_| ("is no URL".to_owned(), REMEDY.to_owned()))?;
    if target.userinfo.is_some() {
        let remedy = "leave them out, and set the header authorization in a route's rewrite.set";
        return Err(("has a user or a password in it".into(), remedy.into()));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !matches!(path, "" | "/") {
        let remedy = "leave it out, and write a route's rewrite.path";
        return Err((format!("has a path ({path:?})"), remedy.into()));
    }
    if ServerName::try_from(target.host.as_str()).is_err() {
        return Err(("names a host that cannot be".into(), REMEDY.into()));
    }
    let scheme = scheme.to_ascii_lowercase();
    Ok(HostConfig { url: format!("{scheme}://{authority}"), socket: None, weight: 1 })
}

fn certificates(table: &Table<'_>, folder: &Path) -> (TlsOptions, Option<String>) {
    let mut unreadable = false;
    let mut path = |key| -> Option<PathBuf> {
        let node = table.get(key)?;
        let path = folder.join(node.string()?);
        if let Err(why) = file::read(&path) {
            node.wrong(format!("{} cannot be read: {why}", path.display()), "");
            unreadable = true;
        }
        Some(path)
    };
    let (cacert, cert, key) = (path("cacert"), path("cert"), path("key"));
    let insecure = table.get("insecure").and_then(|node| node.boolean()).unwrap_or(false);
    let server_name = table.get("server_name").and_then(|node| {
        let name = node.string()?;
        if ServerName::try_from(name).is_err() {
            node.is_no("name for a certificate", r#"write it as "example.org""#);
        }
        Some(name.to_owned())
    });
    table.close();
    let options = TlsOptions { cacert, cert, key, insecure };
    if unreadable {
        return (options, server_name);
    }
    match Tls::shared(&options) {
        Ok(_) | Err(TlsError::Name(_)) => {}
        Err(TlsError::Alone) => table.wrong("cert and key go together", "give both"),
        Err(TlsError::Mismatch(why)) => table.wrong(format!("cert and key do not fit: {why}"), ""),
        Err(TlsError::File(_, path, why)) => table.wrong(format!("{}: {why}", path.display()), "give a PEM file"),
        Err(TlsError::NoRoots(why)) => {
            // Perhaps it is meant for another machine.
            table
                .odd(format!("this machine has no CA certificates ({why})"), "install ca-certificates, or give cacert");
        }
    }
    (options, server_name)
}

fn well(table: &Table<'_>) -> (Health, Option<Check>) {
    let mut health = Health::default();
    if let Some(failures) = table.get("failures").and_then(|node| node.whole(0..=MOST)) {
        health.failures = u32::try_from(failures).unwrap_or(u32::MAX);
    }
    if let Some(rest) = table.get("rest").and_then(|node| node.time()) {
        health.rest = rest;
    }
    if let Some(share) = table.get("most_out").and_then(|node| node.number(0.0..=1.0)) {
        health.most_out = share;
    }
    let check = table.get("check").and_then(|node| node.table()).map(|table| check(&table));
    table.close();
    (health, check)
}

fn check(table: &Table<'_>) -> Check {
    let path = table.get("path");
    if path.is_none() {
        table.wrong("it has no path", r#"write path = "/healthz""#);
    }
    let path = path.and_then(|node| {
        let text = node.string()?;
        if !text.starts_with('/') || text.contains('#') || text.parse::<http::uri::PathAndQuery>().is_err() {
            node.is_no("path", r#"write it as "/healthz""#);
        }
        Some(text.to_owned())
    });
    let time = |key, default| table.get(key).and_then(|node| node.time()).unwrap_or(default);
    let every = time("every", Nanos::from_secs(5));
    let timeout = time("timeout", Nanos::SECOND);
    let statuses = table.get("status").and_then(|node| node.statuses()).unwrap_or_else(|| vec![(200, 299)]);
    table.close();
    Check { path: path.unwrap_or_default(), every, timeout, statuses }
}

/// `"x" is no upstream`, with those that there are.
pub(super) fn unknown(node: &Node<'_>, kind: &str, tables: &str, given: &str, known: &[&str]) {
    let remedy = if known.is_empty() { format!("write a table [{tables}.{given}]") } else { meant(given, known) };
    node.is_no(kind, remedy);
}

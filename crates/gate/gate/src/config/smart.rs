//! Configurations without a file: the shipped demo, and those of flags.

use std::path::Path;

use super::{Config, PolicyConfig, RouteConfig, UpstreamConfig, parse, pattern, policy, upstream};
use weir_request::url_text::UrlText;
use weir_resilience::policy::Policy;
use weir_resilience::upstream::hosts::MAX_HOSTS;

/// The shipped configuration of the demo; also an example of the format.
pub const SMART_CONFIG: &str = include_str!("smart.toml");

/// Path of the upstream requests, if the URL has none.
const DEFAULT_WORK_PATH: &str = "/api/work";

/// The configuration of the demo: `GET /api/smart/{timeout}` and `GET /api/smart?timeout=` in front of the service at
/// `url`, whose path is `/api/work` unless the URL has one.
///
/// # Errors
/// The error of the URL and its remedy.
pub fn smart(url: &str) -> Result<Config, String> {
    let text = UrlText::of(url);
    let (host, path) = if url.starts_with("unix:") { (url, "") } else { (text.origin, text.after_authority) };
    let path = if matches!(path, "" | "/") { DEFAULT_WORK_PATH } else { path };
    parse_host(host)?;
    if path.contains(['{', '}']) || !pattern::is_path(path) {
        return Err(format!("invalid path in '{url}'; write e.g. http://HOST:PORT{DEFAULT_WORK_PATH}"));
    }
    // Path and host have no quotes or backslashes at this point; the name of a socket may have some.
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let text = SMART_CONFIG.replace("= PATH", &format!("= {}", quoted(path)));
    let text = text.replace("[UPSTREAM]", &format!("[{}]", quoted(host)));
    parse(&text, Path::new("")).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("the shipped configuration is invalid with '{url}': {}", all.join("; "))
    })
}

/// Configuration from flags: all requests go to these hosts, by one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct FlagConfig {
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; 1 to 64.
    pub upstreams: Vec<String>,
    /// Policy of every call.
    pub policy: Policy,
}

/// The configuration of a gateway to the hosts that flags name.
///
/// # Errors
/// The error and its remedy.
pub fn from_flags(plain: &FlagConfig) -> Result<Config, String> {
    if plain.upstreams.is_empty() {
        return Err("no upstream; give one as http://HOST:PORT".to_owned());
    }
    if plain.upstreams.len() > MAX_HOSTS {
        return Err(format!("{} upstreams are too many; give {MAX_HOSTS} at most", plain.upstreams.len()));
    }
    if let Some(fault) = plain.policy.validation_error() {
        return Err(fault.to_string());
    }
    let hosts = plain.upstreams.iter().map(|url| parse_host(url)).collect::<Result<_, _>>()?;
    let upstream = UpstreamConfig { hosts, ..UpstreamConfig::new("upstream") };
    let policy = PolicyConfig { policy: plain.policy.clone(), ..PolicyConfig::new(policy::DEFAULT_POLICY) };
    let route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
    Ok(Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() })
}

fn parse_host(url: &str) -> Result<super::HostConfig, String> {
    let shown = if url.contains('@') { "the URL".to_owned() } else { format!("'{url}'") };
    let host = upstream::host(url, Path::new("")).map_err(|fault| format!("{shown} {fault}"))?;
    if host.service_name().is_some() {
        return Err(format!("{shown} has SRV records to be resolved; write a configuration with resolve = \"ttl\""));
    }
    Ok(host)
}

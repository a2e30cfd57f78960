//! Configurations without a file: the endpoint that weir ships, and what flags say.

use std::path::Path;

use super::{Config, PolicyConfig, RouteConfig, UpstreamConfig, parse, pattern, policy, upstream};
use crate::decide::hosts::MAX_HOSTS;
use crate::decide::policy::Policy;

/// The shipped configuration; also an example of the format.
pub const SMART_CONFIG: &str = include_str!("smart.toml");

/// The path that the shipped endpoint asks for, if the URL has none.
const DEFAULT_WORK_PATH: &str = "/api/work";

/// The shipped configuration: `GET /api/smart/{timeout}` and `GET /api/smart?timeout=` in front of the service at
/// `url`, whose path is `/api/work` if it gives none.
///
/// # Errors
/// What is wrong with the URL, in words.
pub fn smart(url: &str) -> Result<Config, String> {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let is_socket = url.starts_with("unix:");
    let end = if is_socket { None } else { url[scheme..].find('/') };
    let (host, path) = url.split_at(end.map_or(url.len(), |at| scheme + at));
    let path = if matches!(path, "" | "/") { DEFAULT_WORK_PATH } else { path };
    parse_host(host)?;
    if path.contains(['{', '}']) || !pattern::is_path(path) {
        return Err(format!(
            "'{url}' has no path that can be asked for; write it as http://HOST:PORT{DEFAULT_WORK_PATH}"
        ));
    }
    // Both are free of quotes and backslashes now, but for the socket's name.
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let text = SMART_CONFIG.replace("= PATH", &format!("= {}", quoted(path)));
    let text = text.replace("[UPSTREAM]", &format!("[{}]", quoted(host)));
    parse(&text, Path::new("")).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("the shipped configuration does not go with '{url}': {}", all.join("; "))
    })
}

/// What flags say: all requests go to these hosts, under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct FlagConfig {
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`; 1 to 64.
    pub upstreams: Vec<String>,
    /// What every call may do.
    pub policy: Policy,
}

/// A gateway to the hosts that flags name.
///
/// # Errors
/// What is wrong, in words.
pub fn from_flags(plain: &FlagConfig) -> Result<Config, String> {
    if plain.upstreams.is_empty() {
        return Err("there is no upstream; give one as http://HOST:PORT".to_owned());
    }
    if plain.upstreams.len() > MAX_HOSTS {
        return Err(format!("{} upstreams are too many; give {MAX_HOSTS} at most", plain.upstreams.len()));
    }
    if let Some((what, remedy)) = plain.policy.validation_error() {
        return Err(format!("{what}; {remedy}"));
    }
    let hosts = plain.upstreams.iter().map(|url| parse_host(url)).collect::<Result<_, _>>()?;
    let upstream = UpstreamConfig { hosts, ..UpstreamConfig::new("upstream") };
    let policy = PolicyConfig { policy: plain.policy.clone(), ..PolicyConfig::new(policy::DEFAULT_POLICY) };
    let route = RouteConfig { policy, ..RouteConfig::forward_all("upstream", "/{*rest}") };
    Ok(Config { upstreams: vec![upstream], routes: vec![route], ..Config::default() })
}

fn parse_host(url: &str) -> Result<super::HostConfig, String> {
    let shown = if url.contains('@') { "the URL".to_owned() } else { format!("'{url}'") };
    upstream::host(url, Path::new("")).map_err(|(what, remedy)| format!("{shown} {what}; {remedy}"))
}

//! The configuration as the admin listener shows it: what routes where, without values of headers and paths of keys,
//! which may be secrets.

use serde_json::{Value, json};

use crate::config::{Config, HostConfig, ListenerConfig, RouteConfig, UpstreamConfig};
use weir_server::tls::{ClientAuth, MinTlsVersion};

pub(super) fn describe(config: &Config) -> Value {
    json!({
        "listeners": config.listeners.iter().map(listener).collect::<Vec<_>>(),
        "admin": config.admin.as_ref().map(ToString::to_string),
        "upstreams": config.upstreams.iter().map(upstream).collect::<Vec<_>>(),
        "routes": config.routes.iter().map(route).collect::<Vec<_>>(),
        "cluster": config.distributed_limits.as_ref().map(|cluster| &cluster.name),
    })
}

fn listener(listener: &ListenerConfig) -> Value {
    let tls = listener.tls.as_ref().map(|tls| {
        let client_auth = tls.client_ca.as_ref().map(|_| match tls.client_auth {
            ClientAuth::Required => "required",
            ClientAuth::Optional => "optional",
        });
        let min_version = match tls.min_version {
            MinTlsVersion::Tls12 => "1.2",
            MinTlsVersion::Tls13 => "1.3",
        };
        let certificates: Vec<_> = tls.certificates.iter().map(|files| files.cert.display().to_string()).collect();
        json!({ "certificates": certificates, "client_auth": client_auth, "min_version": min_version })
    });
    json!({
        "name": listener.name,
        "address": listener.address.to_string(),
        "tls": tls,
        "proxy_protocol": listener.proxy_protocol.to_string(),
        "redirect_to_https": listener.redirect_to_https,
        "max_connections": listener.max_connections,
        "max_connections_per_address": listener.max_connections_per_address,
    })
}

fn upstream(upstream: &UpstreamConfig) -> Value {
    let host = |host: &HostConfig| {
        let place = host.socket.as_ref().map_or_else(|| host.url.clone(), |path| format!("unix:{}", path.display()));
        json!({ "url": place, "weight": host.weight })
    };
    json!({ "name": upstream.name, "hosts": upstream.hosts.iter().map(host).collect::<Vec<_>>() })
}

fn route(route: &RouteConfig) -> Value {
    let upstreams = route.upstreams.iter().map(|it| json!({ "name": it.name, "weight": it.weight }));
    json!({
        "path": route.path,
        "methods": route.methods.iter().map(http::Method::as_str).collect::<Vec<_>>(),
        "hosts": route.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "conditions": route.conditions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "listeners": route.listeners,
        "upstreams": upstreams.collect::<Vec<_>>(),
        "mirror": route.mirror.as_ref().map(|mirror| &mirror.upstream),
        "policy": route.policy.name,
    })
}

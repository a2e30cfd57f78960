//! Addresses in scripts: `wrk.lookup`, `wrk.connect` and `thread.addr`.

use std::fs;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use mlua::{FromLua, Lua, MetaMethod, UserData, UserDataMethods, Value};

/// Timeout of `wrk.connect`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptAddress(pub(crate) SocketAddr);

impl UserData for ScriptAddress {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // As getnameinfo's parts, so IPv6 has no brackets.
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(format!("{}:{}", this.0.ip(), this.0.port())));
        methods.add_meta_method(MetaMethod::Eq, |_, this, other: Self| Ok(this.0 == other.0));
    }
}

impl FromLua for ScriptAddress {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::UserData(data) => data.borrow::<Self>().map(|address| *address),
            other => {
                Err(mlua::Error::runtime(format!("expected an address of wrk.lookup, found {}", other.type_name())))
            }
        }
    }
}

/// Whether an address accepts a connection.
pub(crate) fn accepts(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok()
}

/// Addresses of a host, for a service by its number or name.
///
/// # Errors
/// If the host has none or the service is unknown.
pub(crate) fn lookup(host: &str, service: &str) -> mlua::Result<Vec<ScriptAddress>> {
    let failed = |why: &str| mlua::Error::runtime(format!("cannot resolve {host}:{service}: {why}"));
    let port = port(service).ok_or_else(|| failed("the service has no port"))?;
    let found = (host.trim_start_matches('[').trim_end_matches(']'), port).to_socket_addrs();
    let found = found.map_err(|error| failed(&error.to_string()))?;
    Ok(found.map(ScriptAddress).collect())
}

/// Port of a service: a number, or a name of `/etc/services`.
fn port(service: &str) -> Option<u16> {
    if let Ok(port) = service.parse() {
        return Some(port);
    }
    match service {
        "http" => Some(80),
        "https" => Some(443),
        name => {
            let services = fs::read_to_string("/etc/services").ok()?;
            let port = |line: &str| {
                let mut words = line.split('#').next()?.split_whitespace();
                let (first, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
                (first == name || words.any(|alias| alias == name)).then(|| port.parse().ok())?
            };
            services.lines().find_map(port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_numbers_or_names() {
        assert_eq!(port("8080"), Some(8080));
        assert_eq!((port("http"), port("https")), (Some(80), Some(443)));
        assert_eq!((port("no-such-service"), port("99999"), port("")), (None, None, None));
        let found = lookup("127.0.0.1", "81").unwrap();
        assert_eq!(found, [ScriptAddress("127.0.0.1:81".parse().unwrap())]);
        assert_eq!(lookup("[::1]", "http").unwrap(), [ScriptAddress("[::1]:80".parse().unwrap())]);
    }
}

//! Hosts that may have the API keys and the default credentials of a sender: the origin of its URL, and those that its
//! operator names.

use weir_net::target::Target;
use weir_request::origin::CredentialOrigin;
use weir_request::url_text::UrlText;

/// Hosts to which keys and default credentials are sent; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHosts {
    hosts: Vec<KeyHost>,
    /// Values of `Host` that the operator gives all requests: other names of these hosts.
    given: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyHost {
    host: String,
    /// None for every port.
    port: Option<u16>,
    /// Whether it may have them without TLS.
    allows_plain: bool,
    /// Whether it may have them over TLS as well as without; the origin of a URL has one scheme.
    allows_both: bool,
}

impl KeyHosts {
    /// The origin of a sender's URL, and named hosts: `HOST` for every port, `HOST:PORT`, or an origin with a scheme. A
    /// host without a scheme may have keys in plain text if the URL is http, or if it is this machine.
    ///
    /// # Errors
    /// One line of text.
    pub fn new(url: Option<&str>, names: &[String]) -> Result<Self, String> {
        // The host of a URL has no field, so that it is the same for all jobs.
        let own = url.map(|url| Target::parse(url).map_err(|error| format!("--url: {error}"))).transpose()?;
        let is_plain = own.as_ref().is_some_and(|target| !target.tls);
        let own = own.map(|target| KeyHost {
            allows_plain: !target.tls,
            allows_both: false,
            port: Some(target.port),
            host: target.host,
        });
        let named = names.iter().map(|name| KeyHost::read(name, is_plain));
        Ok(Self { hosts: own.into_iter().map(Ok).chain(named).collect::<Result<_, _>>()?, given: Vec::new() })
    }

    /// Adds each `Host` of the default headers, which the operator gives.
    #[must_use]
    pub fn with_defaults(mut self, headers: &[(String, String)]) -> Self {
        let hosts = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        self.given = hosts.map(|(_, value)| value.clone()).collect();
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Origin of a URL, or the one that its `Host` names, that may have no keys. A `Host` of another name or port leads
    /// to another service behind the same address.
    pub(super) fn foreign(&self, target: &Target, host: Option<&str>) -> Option<String> {
        let scheme = if target.tls { "https" } else { "http" };
        if !self.allows(target) {
            return Some(target.origin());
        }
        let host = host.filter(|host| !self.is_given(host))?;
        match named_target(scheme, host) {
            Some(named) if self.allows(&named) => None,
            Some(named) => Some(named.origin()),
            None => Some(format!("{scheme}://{}", host.escape_debug())),
        }
    }

    /// Whether the operator gives a `Host` of this value, as it is written.
    pub(super) fn is_given(&self, host: &str) -> bool {
        self.given.iter().any(|given| given == host)
    }

    /// Whether requests to this target may have keys and default credentials.
    pub fn allows(&self, target: &Target) -> bool {
        let to = target.credential_origin();
        self.hosts.iter().any(|known| match known.port {
            Some(port) => {
                let from = CredentialOrigin { is_tls: !known.allows_plain, host: &known.host, port };
                let over_tls = CredentialOrigin { is_tls: true, ..from };
                from.shares_credentials_with(&to) || known.allows_both && over_tls.shares_credentials_with(&to)
            }
            None => {
                let from = CredentialOrigin { host: &known.host, ..to };
                (target.tls || known.allows_plain) && from.shares_credentials_with(&to)
            }
        })
    }
}

impl KeyHost {
    fn read(name: &str, is_plain: bool) -> Result<Self, String> {
        let wrong = || format!("invalid --key-host '{}'; write HOST, HOST:PORT or https://HOST", name.escape_debug());
        let text = UrlText::of(name);
        let target = Target::parse(name).map_err(|_| wrong())?;
        if target.userinfo.is_some() || !text.after_authority.is_empty() || name.contains(['{', '}']) {
            return Err(wrong());
        }
        let has_scheme = text.scheme.is_some();
        let has_port = text.authority.rsplit_once(']').map_or(text.authority, |(_, end)| end).contains(':');
        let host = target.host;
        let allows_plain = if has_scheme { !target.tls } else { is_plain || is_this_machine(&host) };
        Ok(Self { port: (has_scheme || has_port).then_some(target.port), allows_plain, allows_both: true, host })
    }
}

/// Target that a `Host` names, with the scheme of the URL; None if it names none.
fn named_target(scheme: &str, host: &str) -> Option<Target> {
    let host = host.trim();
    if host.contains(['/', '?', '#', '@']) {
        return None;
    }
    Target::parse(&format!("{scheme}://{host}")).ok()
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(url: Option<&str>, names: &[&str], to: &str) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        KeyHosts::new(url, &names).unwrap().allows(&Target::parse(to).unwrap())
    }

    #[test]
    fn keys_belong_to_the_origin_of_the_url_and_to_named_hosts() {
        for (url, names, to, goes) in [
            (Some("http://a/x"), &[][..], "http://A/y", true),
            (Some("http://a/x"), &[], "http://u:p@a:80/", true),
            (Some("http://a/x"), &[], "https://a/", true),
            (Some("http://a/x"), &[], "http://a:8080/", false),
            (Some("http://a:8080/x"), &[], "https://a:8080/", false),
            (Some("https://a/x"), &[], "http://a/", false),
            (Some("http://a@b/x"), &[], "http://a/", false),
            (Some("http://a/x"), &[], "http://a.evil/", false),
            (Some("http://a/x"), &["b"], "http://b:9/", true),
            (Some("http://a/x"), &["b:8"], "http://b:9/", false),
            (Some("http://a/x"), &["b:8"], "https://b:8/", true),
            (Some("https://a/x"), &["b"], "http://b/", false),
            (Some("https://a/x"), &["b"], "https://b:9/", true),
            (Some("https://a/x"), &["http://b:9"], "http://b:9/", true),
            (Some("https://a/x"), &["https://b"], "https://b:9/", false),
            (None, &[], "http://a/", false),
            (None, &["b"], "http://b/", false),
            (None, &["127.0.0.1"], "http://127.0.0.1:9/", true),
            (None, &["[::1]:9"], "http://[::1]:9/", true),
            (None, &["::1"], "http://[::1]:9/", false),
        ] {
            if names == ["::1"] {
                assert!(KeyHosts::new(url, &["::1".into()]).is_err());
            } else {
                assert_eq!(allows(url, names, to), goes, "{url:?} {names:?} {to}");
            }
        }
        for wrong in ["", "a/b", "http://a/", "u:p@a", "ftp://a", "a:0", "{id}.a", "a b"] {
            assert!(KeyHosts::new(None, &[wrong.into()]).unwrap_err().contains("--key-host"), "{wrong}");
        }
    }
}

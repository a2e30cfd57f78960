//! Access to the page: tokens, and requests that a foreign page makes in a user's browser.
//!
//! A page of another site can make a browser send requests to this machine. Two checks keep it out besides the token:
//! the `Host` must be one of ours (a name that was rebound to this address has another), and a request that changes
//! something must not come from another origin.

use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Rights of a token's bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebRole {
    /// Reads.
    Spectator,
    /// Reads, and changes the load.
    Operator,
}

/// Tokens and names of a page.
#[derive(Clone, Debug)]
pub(crate) struct AccessRules {
    /// Token of those who may change the load, and of those who may only read.
    pub(crate) operator_token: String,
    pub(crate) spectator_token: String,
    /// Names of the host besides addresses and `localhost`.
    pub(crate) host_names: Vec<String>,
}

/// Headers of a request that access depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessHeaders<'a> {
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) fetch_site: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
}

/// Reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessDenial {
    /// The host is not one of ours.
    ForeignHost,
    /// The request is one of another site.
    ForeignOrigin,
    /// There is no valid token.
    NoToken,
}

impl AccessDenial {
    /// Status and text of the response.
    pub(crate) fn response(self) -> (u16, &'static str) {
        match self {
            Self::ForeignHost => (421, "this host is not served here; open the address that weir has printed"),
            Self::ForeignOrigin => (403, "requests of other sites are rejected"),
            Self::NoToken => (401, "a token is missing or wrong; open the address that weir has printed"),
        }
    }
}

/// Length of a token that is made up, in bytes.
const TOKEN_BYTES: usize = 18;

/// Token that cannot be guessed; `None` if the system has no random numbers.
pub(crate) fn new_token() -> Option<String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

impl AccessRules {
    /// Checks the host and origin of any request.
    pub(crate) fn check_site(&self, headers: AccessHeaders<'_>) -> Result<(), AccessDenial> {
        let host = headers.host.filter(|host| self.is_own(host)).ok_or(AccessDenial::ForeignHost)?;
        let is_foreign =
            |origin: &str| origin.strip_prefix("http://").is_none_or(|origin| !origin.eq_ignore_ascii_case(host));
        let is_cross = |site: &str| !matches!(site, "same-origin" | "none");
        if headers.origin.is_some_and(is_foreign) || headers.fetch_site.is_some_and(is_cross) {
            return Err(AccessDenial::ForeignOrigin);
        }
        Ok(())
    }

    /// Role of a request for data.
    pub(crate) fn role(&self, headers: AccessHeaders<'_>) -> Result<WebRole, AccessDenial> {
        let token = headers.authorization.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        match () {
            () if is_same(token, &self.operator_token) => Ok(WebRole::Operator),
            () if is_same(token, &self.spectator_token) => Ok(WebRole::Spectator),
            () => Err(AccessDenial::NoToken),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = without_port.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(without_port);
        // An address cannot be rebound.
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.host_names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Comparison whose time does not depend on where two tokens differ.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && !other.is_empty() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> AccessRules {
        AccessRules {
            operator_token: "operator-token".to_owned(),
            spectator_token: "spectator-token".to_owned(),
            host_names: vec!["build-7".to_owned()],
        }
    }

    #[test]
    fn only_our_own_hosts_are_served() {
        let check = |host| rules().check_site(AccessHeaders { host, ..AccessHeaders::default() });
        for own in ["127.0.0.1:8089", "localhost:8089", "LOCALHOST", "[::1]:8089", "10.0.0.7:1", "Build-7:8089"] {
            assert_eq!(check(Some(own)), Ok(()), "{own}");
        }
        for foreign in
            ["", "evil.example", "evil.example:8089", "127.0.0.1.evil.example:8089", "localhost.evil.example"]
        {
            assert_eq!(check(Some(foreign)), Err(AccessDenial::ForeignHost), "{foreign}");
        }
        assert_eq!(check(None), Err(AccessDenial::ForeignHost));
    }

    #[test]
    fn a_request_of_another_site_is_rejected_whatever_its_token() {
        let host = Some("127.0.0.1:8089");
        let check = |origin, fetch_site| {
            rules().check_site(AccessHeaders { host, origin, fetch_site, ..AccessHeaders::default() })
        };
        assert_eq!(check(Some("http://127.0.0.1:8089"), Some("same-origin")), Ok(()));
        assert_eq!(check(None, Some("none")), Ok(()));
        for origin in
            ["http://evil.example", "null", "http://127.0.0.1:8090", "https://127.0.0.1:8089", "http://127.0.0.1"]
        {
            assert_eq!(check(Some(origin), None), Err(AccessDenial::ForeignOrigin), "{origin}");
        }
        for site in ["cross-site", "same-site", ""] {
            assert_eq!(check(None, Some(site)), Err(AccessDenial::ForeignOrigin), "{site}");
        }
    }

    #[test]
    fn a_role_is_that_of_the_token() {
        let role = |authorization| rules().role(AccessHeaders { authorization, ..AccessHeaders::default() });
        assert_eq!(role(Some("Bearer operator-token")), Ok(WebRole::Operator));
        assert_eq!(role(Some("Bearer spectator-token")), Ok(WebRole::Spectator));
        for wrong in [
            None,
            Some(""),
            Some("Bearer "),
            Some("Bearer operator-toke"),
            Some("operator-token"),
            Some("Basic operator-token"),
        ] {
            assert_eq!(role(wrong), Err(AccessDenial::NoToken), "{wrong:?}");
        }
        let unset = AccessRules { spectator_token: String::new(), ..rules() };
        assert_eq!(
            unset.role(AccessHeaders { authorization: Some("Bearer "), ..AccessHeaders::default() }),
            Err(AccessDenial::NoToken)
        );
        assert_ne!(new_token(), new_token());
    }
}

//! Server of a page: its address, tokens, and names of the host.

use super::access::{AccessRules, new_token};
use super::web_address::WebAddress;
use weir_machine::logger::Logger;
use weir_server::{BuiltinPaths, Options, RunningServer, ServerError, Service};

/// Shortest token that a user may choose, in characters.
const MIN_TOKEN_CHARS: usize = 16;

/// Address of a page, and the clients that may open it.
#[derive(Clone, Copy, Debug)]
pub struct PageListener<'a> {
    /// Flag that errors name, e.g. `--web`.
    pub flag: &'static str,
    /// Address; none: the default one, or another port if that is taken.
    pub address: Option<&'a WebAddress>,
    /// Token; none: a random one.
    pub token: Option<&'a str>,
}

impl PageListener<'_> {
    fn at(&self) -> WebAddress {
        self.address.cloned().unwrap_or_else(|| WebAddress { host: "127.0.0.1".to_owned(), port: 8089 })
    }

    /// Tokens and names of the page.
    ///
    /// # Errors
    /// One line: an address that is not of this machine alone without a token, or an invalid token.
    pub(crate) fn rules(&self) -> Result<AccessRules, String> {
        let at = self.at();
        self.check_token(&at)?;
        let operator_token = self.token.map_or_else(|| self.random(), |token| Ok(token.to_owned()))?;
        Ok(AccessRules {
            operator_token,
            spectator_token: self.random()?,
            host_names: vec![at.host, weir_load::machine_manifest().hostname],
        })
    }

    /// Name or token that cannot be guessed.
    ///
    /// # Errors
    /// One line, if the system has no random numbers.
    pub(crate) fn random(&self) -> Result<String, String> {
        new_token().ok_or_else(|| format!("{}: the system has no random numbers for a token", self.flag))
    }

    /// Starts a service at the address.
    ///
    /// # Errors
    /// One line: an address that cannot be listened on.
    pub(crate) fn start<S: Service>(&self, service: impl Fn() -> S, logger: &Logger) -> Result<RunningServer, String> {
        let at = self.at();
        let start = |port| {
            let options = Options {
                host: at.host.clone(),
                port,
                builtin_paths: BuiltinPaths { metrics: String::new(), health: String::new() },
                logger: logger.clone(),
                ..Options::default()
            };
            weir_server::start_boxed(service(), &options)
        };
        let started = match start(at.port) {
            Err(ServerError::Listen(..)) if self.address.is_none() => start(0),
            other => other,
        };
        started.map_err(|error| format!("{}: {error}", self.flag))
    }

    fn check_token(&self, at: &WebAddress) -> Result<(), String> {
        match self.token {
            None if !at.is_loopback() => Err(format!(
                "{}: other machines can reach {}; give a token of your own with --web-token TOKEN",
                self.flag, at.host
            )),
            Some(token) if token.len() < MIN_TOKEN_CHARS => {
                Err(format!("--web-token: the token is too short; write {MIN_TOKEN_CHARS} characters or more"))
            }
            Some(token) if !token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) => {
                Err("--web-token: the token has other characters than letters, digits and -._~".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Addresses of those who may change things, and of those who may only read.
pub(crate) fn page_urls(rules: &AccessRules, server: &RunningServer) -> [String; 2] {
    let address = server.address();
    let url = match address.ip().is_unspecified() {
        true => format!("http://{}:{}", weir_load::machine_manifest().hostname, address.port()),
        false => server.url(),
    };
    [&rules.operator_token, &rules.spectator_token].map(|token| format!("{url}/#{token}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_other_machines_needs_a_token_that_is_no_word() {
        let check = |address: &str, token| {
            let at = address.parse::<WebAddress>().expect("an address");
            PageListener { flag: "--web", address: Some(&at), token }.rules().map(|rules| rules.operator_token)
        };
        assert_eq!(check("127.0.0.1:1", None).map(|token| token.len()), Ok(24));
        assert!(check("0.0.0.0:1", None).is_err_and(|why| why.contains("--web-token")));
        assert_eq!(check("0.0.0.0:1", Some("0123456789abcdef")), Ok("0123456789abcdef".to_owned()));
        for wrong in ["", "secret", "0123456789abcde", "0123456789 abcdef", "0123456789abcdef#"] {
            assert!(check("127.0.0.1:1", Some(wrong)).is_err(), "{wrong}");
        }
    }
}

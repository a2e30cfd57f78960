//! What the user asked for, before any of it is checked: the command line and Python fill in the same form.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::decide::schedule::{Arrivals, LoadStage};
use crate::http::tls::TlsOptions;

/// A load to drive, as asked for. `None` and empty lists mean "not given".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Where to.
    pub url: String,
    /// Closed loop: connections that ask all the time. Open loop: the cap on connections.
    pub connections: Option<u64>,
    /// Generator threads.
    pub threads: Option<u64>,
    /// Stop after so many requests.
    pub requests: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Closed loop in JMeter's words: users, ...
    pub users: Option<u64>,
    /// ... the time over which they start, ...
    pub ramp_up: Option<Duration>,
    /// ... and how often each asks.
    pub loops: Option<u64>,
    /// A new connection for each request of a user.
    pub fresh: bool,
    /// Open loop: requests per second.
    pub rate: Option<f64>,
    /// Open loop: how arrivals are spread.
    pub arrivals: Arrivals,
    /// Open loop: rates that change.
    pub stages: Vec<LoadStage>,
    /// The method; by default GET, or POST with a body.
    pub method: Option<String>,
    /// Lines `Name: value`.
    pub headers: Vec<String>,
    /// Bodies to choose from.
    pub bodies: Vec<RequestBodySource>,
    /// The bodies' weights, in their order; equal if none.
    pub weights: Vec<f64>,
    /// `user:password` for basic authentication.
    pub auth: Option<String>,
    /// The longest wait for an answer, from the send; and for a free connection.
    pub timeout: Option<Duration>,
    /// Close the connection after each answer.
    pub no_keepalive: bool,
    /// Requests in flight on a connection at a time.
    pub pipeline: Option<u64>,
    /// Connect to this Unix socket, whatever the URL's host.
    pub unix_socket: Option<PathBuf>,
    /// Connect to this HOST:PORT, whatever the URL's host.
    pub connect_to: Option<String>,
    /// Certificates and checks.
    pub tls: TlsOptions,
    /// The name to ask for in TLS, in place of the URL's host.
    pub sni: Option<String>,
    /// Leave the requests of the first stretch out of the result.
    pub warmup: Option<Duration>,
    /// Repeats arrivals and choices.
    pub seed: Option<u64>,
    /// Never sleep: more even sends for a whole core.
    pub spin: bool,
}

/// Where a request's body comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestBodySource {
    /// These bytes.
    Bytes(#[serde(with = "in_base64")] Vec<u8>),
    /// All of this file.
    File(PathBuf),
}

/// As the command line has it: text, or `@FILE`.
impl FromStr for RequestBodySource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None => Self::Bytes(text.into()),
        })
    }
}

mod in_base64 {
    use super::{BASE64_STANDARD, Deserialize, Deserializer, Engine, Error, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        BASE64_STANDARD.encode(bytes).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

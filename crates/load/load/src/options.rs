//! Options of a load as given on the command line or in Python, not yet validated.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::address_rules::AddressRules;
use super::base64_bytes;
use super::event_streams::StreamOptions;
use super::grpc::GrpcOptions;
use super::http2::Http2Options;
use super::program::ProgramOptions;
use super::steps::ScenarioSource;
use super::websocket::WebSocketOptions;
use weir_net::tls::TlsOptions;
use weir_pace::schedule::{Arrivals, LoadStage};
use weir_request::secret_mask::SecretMask;
use weir_scenario::value::Value;

/// Options of a load, not yet validated. `None` and empty lists mean "not given".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Target URL; with scenarios the URL before their paths, or empty.
    pub url: String,
    /// Scenarios in place of one request.
    #[serde(default)]
    pub scenarios: Vec<ScenarioSource>,
    /// Settings of the scenario that a single request with templates becomes: variables; its text is empty.
    #[serde(default)]
    pub request_scenario: ScenarioSource,
    /// Predicates that the response to a single request must fulfill, in the format of hurl's asserts.
    #[serde(default)]
    pub checks: Vec<String>,
    /// Predicate that makes a response a success; without it a status below 400 does.
    #[serde(default)]
    pub success: Option<String>,
    /// Whether `{{` in a single request is text.
    #[serde(default)]
    pub no_template: bool,
    /// Names of secrets beside the known ones: headers, variables, parameters, and fields of bodies.
    #[serde(default)]
    pub redact: Vec<String>,
    /// Concurrent connections; in the open loop the maximum.
    pub connections: Option<u64>,
    /// Number of generator threads.
    pub threads: Option<u64>,
    /// Number of requests.
    pub requests: Option<u64>,
    /// Duration.
    pub duration: Option<Duration>,
    /// Closed-loop users, each with its own connection.
    pub users: Option<u64>,
    /// Time over which users start, evenly.
    pub ramp_up: Option<Duration>,
    /// Requests per user.
    pub loops: Option<u64>,
    /// Open-loop arrival rate, in requests per second.
    pub rate: Option<f64>,
    /// Arrival process of the open loop.
    pub arrivals: Arrivals,
    /// Open-loop arrival rate over time.
    pub stages: Vec<LoadStage>,
    /// Users of the closed loop over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_stages: Vec<LoadStage>,
    /// Request method; by default GET, or POST with a body.
    pub method: Option<String>,
    /// Request headers, as `Name: value`.
    pub headers: Vec<String>,
    /// Request bodies, chosen at random.
    pub bodies: Vec<RequestBodySource>,
    /// Weights of the bodies, in order; equal if empty.
    pub weights: Vec<f64>,
    /// `user:password` for basic authentication.
    pub auth: Option<String>,
    /// Timeout of a request, and of waiting for a connection.
    pub timeout: Option<Duration>,
    /// New connection for each request.
    pub no_keepalive: bool,
    /// Requests in flight per connection.
    pub pipeline: Option<u64>,
    /// HTTP/2, in place of HTTP/1.1.
    #[serde(default)]
    pub http2: Http2Options,
    /// Description of the service of a grpc URL.
    #[serde(default, skip_serializing_if = "GrpcOptions::is_empty")]
    pub grpc: GrpcOptions,
    /// Responses as streams of events, if they are read as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamOptions>,
    /// WebSocket, of a URL of `ws://` or `wss://`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub websocket: WebSocketOptions,
    /// Unix socket to connect to.
    pub unix_socket: Option<PathBuf>,
    /// HOST:PORT to connect to, instead of the URL's.
    pub connect_to: Option<String>,
    /// Certificates and their verification.
    pub tls: TlsOptions,
    /// Choice among the addresses of names, in place of a race; of programs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_rules: Option<AddressRules>,
    /// TLS server name, instead of the URL's host.
    pub sni: Option<String>,
    /// Initial time excluded from the result.
    pub warmup: Option<Duration>,
    /// Seed of arrivals and body choices.
    pub seed: Option<u64>,
    /// Busy-wait for exact send times; one core per thread.
    pub spin: bool,
    /// Whether requests are traced, so that each is made for itself.
    #[serde(default)]
    pub traces_requests: bool,
    /// Name of a script that names the hosts of its requests, in place of a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_name: Option<String>,
    /// Program whose users agents drive, in place of one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramOptions>,
}

fn is_default(options: &WebSocketOptions) -> bool {
    *options == WebSocketOptions::default()
}

impl Options {
    /// Name of a script that names the hosts of its requests, if there is one.
    pub(crate) fn naming_script(&self) -> Option<String> {
        let of_program = self.program.as_ref().filter(|program| matches!(program, ProgramOptions::JavaScript(_)));
        let of_program = of_program.map(|program| program.shown_name().display().to_string());
        self.script_name.clone().or(of_program)
    }

    /// Whether a closed loop is one of connections, and not of users.
    pub fn has_connections(&self) -> bool {
        self.users.is_none() && self.user_stages.is_empty()
    }

    /// Secrets of the load, by names and values, which no result shows.
    pub fn secret_mask(&self) -> SecretMask {
        let mut mask = SecretMask::new(&self.redact);
        mask.add_fields(&self.url);
        self.auth.iter().for_each(|auth| mask.add(auth));
        // As a head of HTTP/1.1, after a request line.
        mask.add_head(&format!("\n{}", self.headers.join("\n")));
        for source in self.scenarios.iter().chain([&self.request_scenario]) {
            for (name, value) in source.variables.iter().chain(&source.captured) {
                mask.add_named(name, &Value::of_text(value).template_text().unwrap_or_default());
            }
            mask.add_fields(&source.text);
        }
        for body in &self.bodies {
            if let RequestBodySource::Bytes(bytes) = body {
                mask.add_fields(&String::from_utf8_lossy(bytes));
            }
        }
        mask
    }
}

/// Request body as bytes, or the file to read it from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestBodySource {
    /// These bytes.
    Bytes(#[serde(with = "base64_bytes")] Vec<u8>),
    /// All of this file.
    File(PathBuf),
}

/// Reads the command-line form: text, or `@FILE`.
impl FromStr for RequestBodySource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None => Self::Bytes(text.into()),
        })
    }
}

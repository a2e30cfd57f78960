//! Endpoint: where requests go, and what all of them have in common.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BodyTemplate, RequestSettings};
use weir_events::llm::LlmApi;
use weir_load::Options;
use weir_load::http2::Http2Options;
use weir_machine::input_file;
use weir_net::target::Target;
use weir_net::tls::TlsOptions;
use weir_request::secret_mask::SecretMask;
use weir_request::url_text::UrlText;

/// Default timeout of a request: a long response of a busy server takes minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// Version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "anthropic-version: 2023-06-01";

/// Endpoint, and the connections to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointOptions {
    /// URL of the server; the API's path is added.
    pub url: String,
    /// Name of the model.
    pub model: Option<String>,
    /// API; by default by the URL's path, or chat.
    pub api: Option<LlmApi>,
    /// Path of requests, in place of the API's.
    pub path: Option<String>,
    /// Environment variable with the API key.
    pub api_key_env: Option<String>,
    /// Whether responses come in one piece.
    pub no_stream: bool,
    /// Members that are added to each body, as a JSON object.
    pub extra_body: Option<String>,
    /// Body of another API with `{{prompt}}`, or `@FILE`.
    pub body_template: Option<String>,
    /// Temperature of the sampling, from 0; by default the server's.
    pub temperature: Option<f64>,
    /// Whether responses have as many tokens as they may.
    pub ignore_eos: bool,
    /// Request headers, as `Name: value`; they replace default ones.
    pub headers: Vec<String>,
    /// Timeout of a request, and of waiting for a connection; by default 10 minutes.
    pub timeout: Option<Duration>,
    /// Longest time between two events of a response; by default none.
    pub stall_timeout: Option<Duration>,
    /// Whether each request has a new connection.
    pub no_keep_alive: bool,
    /// HTTP/2, in place of HTTP/1.1.
    pub http2: Http2Options,
    /// Unix socket to connect to.
    pub unix_socket: Option<PathBuf>,
    /// HOST:PORT to connect to, instead of the URL's.
    pub connect_to: Option<String>,
    /// Certificates and their verification.
    pub tls: TlsOptions,
    /// TLS server name, instead of the URL's host.
    pub sni: Option<String>,
}

/// Where requests go, and what they have in common.
#[derive(Clone, Debug)]
pub(super) struct LlmEndpoint {
    pub(super) settings: RequestSettings,
    pub(super) stall_timeout: Option<Duration>,
    /// Options of a load to it, without its rate and length.
    pub(super) options: Options,
    /// Secrets that are left out of what is saved.
    pub(super) secrets: SecretMask,
}

impl EndpointOptions {
    /// The endpoint; `batch_url` is the path that a data set has for its requests.
    ///
    /// # Errors
    /// One line with the invalid flag.
    pub(super) fn endpoint(&self, batch_url: Option<&str>) -> Result<LlmEndpoint, String> {
        let target = Target::parse(&self.url).map_err(|error| error.to_string())?;
        let named = self.path.as_deref().or(batch_url).unwrap_or(&target.path);
        let api = self.api.or_else(|| LlmApi::of_path(named)).unwrap_or_default();
        if let Some(path) = batch_url.filter(|path| self.path.is_none() && LlmApi::of_path(path) != Some(api)) {
            return Err(format!("the data set is a batch for {path}, which is not --api {}", api.name()));
        }
        let template = self.body_template.as_deref().map(template).transpose()?;
        if self.model.is_none() && template.is_none() && api != LlmApi::Tgi {
            return Err("--model is missing; write the name that the server has for it (GET /v1/models)".to_owned());
        }
        if self.temperature.is_some_and(|number| !(number.is_finite() && number >= 0.0)) {
            return Err("--temperature: write a number from 0".to_owned());
        }
        let streams = !self.no_stream && api != LlmApi::Embeddings;
        let path = match &self.path {
            Some(path) if path.starts_with('/') => path.clone(),
            Some(path) => return Err(format!("--endpoint '{path}': write a path, e.g. /v1/chat/completions")),
            None if template.is_some() => target.path.clone(),
            None => api.target_path(&target.path, streams),
        };
        let key = self.api_key_env.as_deref().map(api_key).transpose()?;
        let headers = headers(self.headers.clone(), api, key.as_deref());
        let settings = RequestSettings {
            api,
            template,
            model: self.model.clone(),
            streams,
            ignores_end: self.ignore_eos,
            has_minimum: false,
            temperature: self.temperature,
            extra: self.extra_body.clone().unwrap_or_default(),
        };
        let options = Options {
            url: with_path(&self.url, &path),
            method: Some("POST".to_owned()),
            headers,
            no_template: true,
            timeout: Some(self.timeout.unwrap_or(DEFAULT_TIMEOUT)),
            no_keepalive: self.no_keep_alive,
            http2: self.http2,
            sni: self.sni.clone(),
            unix_socket: self.unix_socket.clone(),
            connect_to: self.connect_to.clone(),
            tls: self.tls.clone(),
            ..Options::default()
        };
        let secrets = options.secret_mask().with_values(key.as_slice());
        Ok(LlmEndpoint { settings, stall_timeout: self.stall_timeout, secrets, options })
    }
}

/// Header lines of all requests; those that are given replace the default ones.
fn headers(given: Vec<String>, api: LlmApi, key: Option<&str>) -> Vec<String> {
    let mut headers = vec!["Content-Type: application/json".to_owned()];
    match (api, key) {
        (LlmApi::Messages, Some(key)) => headers.push(format!("x-api-key: {key}")),
        (_, Some(key)) => headers.push(format!("Authorization: Bearer {key}")),
        (_, None) => {}
    }
    if api == LlmApi::Messages {
        headers.push(ANTHROPIC_VERSION.to_owned());
    }
    let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    headers.retain(|line| !given.iter().any(|own| name(own) == name(line)));
    headers.extend(given);
    headers
}

fn api_key(name: &str) -> Result<String, String> {
    let key = std::env::var(name).map_err(|_| format!("--api-key-env: the environment has no {name}"))?;
    let key = key.trim().to_owned();
    if key.is_empty() { Err(format!("--api-key-env: {name} is empty")) } else { Ok(key) }
}

fn template(text: &str) -> Result<BodyTemplate, String> {
    let text = match text.strip_prefix('@') {
        Some(path) => {
            input_file::read_to_string(path).map_err(|error| format!("--body-template: cannot read {path}: {error}"))?
        }
        None => text.to_owned(),
    };
    text.parse().map_err(|why| format!("--body-template: {why}"))
}

/// URL with another path and query.
fn with_path(url: &str, path: &str) -> String {
    format!("{}{path}", UrlText::of(url).origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_url_is_replaced() {
        for (url, expected) in [
            ("http://h:1", "http://h:1/p"),
            ("http://h:1/", "http://h:1/p"),
            ("http://u:p@h/v1?x=1", "http://u:p@h/p"),
            ("h:1/a/b", "h:1/p"),
        ] {
            assert_eq!(with_path(url, "/p"), expected);
        }
    }

    #[test]
    fn keys_go_into_the_header_of_the_api_and_given_headers_replace_the_defaults() {
        let lines =
            |api, given: &[&str]| headers(given.iter().map(|line| (*line).to_owned()).collect(), api, Some("k"));
        let json = "Content-Type: application/json";
        assert_eq!(lines(LlmApi::Chat, &[]), [json, "Authorization: Bearer k"]);
        assert_eq!(lines(LlmApi::Messages, &[]), [json, "x-api-key: k", ANTHROPIC_VERSION]);
        assert_eq!(lines(LlmApi::Chat, &["authorization: own"]), [json, "authorization: own"]);
    }
}

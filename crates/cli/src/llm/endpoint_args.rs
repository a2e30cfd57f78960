//! Flags of the endpoint: where requests go, and what all of them have in common.

use std::time::Duration;

use clap::Args;

use crate::file_as_url::reject_file;
use crate::service_connection_args::ServiceConnectionArgs;
use weir_base::units;
use weir_events::llm::LlmApi;
use weir_llm::load::EndpointOptions;
use weir_load::Options;

const ENDPOINT: &str = "Endpoint";

/// Endpoint, and the connections to it.
#[derive(Clone, Debug, Args)]
pub(super) struct EndpointArgs {
    /// server's URL, e.g. http://localhost:8000; the API's path is added
    url: String,
    /// request this model, as the server names it; most APIs need it
    #[arg(long, value_name = "NAME", help_heading = ENDPOINT)]
    model: Option<String>,
    /// use chat, completions, responses, embeddings, messages, ollama, ollama-generate, tgi [default: by path or chat]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<LlmApi>, help_heading = ENDPOINT)]
    api: Option<LlmApi>,
    /// send requests to this path instead of the API's
    #[arg(long, value_name = "PATH", help_heading = ENDPOINT)]
    endpoint: Option<String>,
    /// read the API key from this environment variable
    #[arg(long, value_name = "NAME", help_heading = ENDPOINT)]
    api_key_env: Option<String>,
    /// request whole responses, without token times
    #[arg(long, help_heading = ENDPOINT)]
    no_stream: bool,
    /// add the members of this JSON object to each body
    #[arg(long, value_name = "JSON", help_heading = ENDPOINT)]
    extra_body: Option<String>,
    /// send this body template, with {{prompt}}, to another API
    #[arg(long, value_name = "TEXT|@FILE", help_heading = ENDPOINT)]
    body_template: Option<String>,
    /// set the sampling temperature [default: the server's]
    #[arg(long, value_name = "NUMBER", help_heading = ENDPOINT)]
    temperature: Option<f64>,
    /// ignore end-of-sequence tokens, for full-length responses (vLLM, SGLang)
    #[arg(long, help_heading = ENDPOINT)]
    ignore_eos: bool,
    /// add a request header; 'NAME:' removes a default one; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = ENDPOINT)]
    headers: Vec<String>,
    /// time out a request, or its wait for a connection [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = ENDPOINT)]
    timeout: Option<Duration>,
    /// fail a response that sends no event for TIME [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = ENDPOINT)]
    stall_timeout: Option<Duration>,

    #[command(flatten)]
    connection_args: ServiceConnectionArgs,
}

impl EndpointArgs {
    /// Rejects a file in the place of the URL.
    ///
    /// # Errors
    /// One line with the command that takes the file.
    pub(super) fn reject_file(&self) -> Result<(), String> {
        reject_file(&self.url, "load")
    }

    /// Options of the endpoint.
    pub(super) fn into_options(self) -> EndpointOptions {
        let Options { no_keepalive, http2, unix_socket, connect_to, tls, sni, .. } =
            self.connection_args.into_options();
        EndpointOptions {
            url: self.url,
            model: self.model,
            api: self.api,
            path: self.endpoint,
            api_key_env: self.api_key_env,
            no_stream: self.no_stream,
            extra_body: self.extra_body,
            body_template: self.body_template,
            temperature: self.temperature,
            ignore_eos: self.ignore_eos,
            headers: self.headers,
            timeout: self.timeout,
            stall_timeout: self.stall_timeout,
            no_keep_alive: no_keepalive,
            http2,
            unix_socket,
            connect_to,
            tls,
            sni,
        }
    }
}

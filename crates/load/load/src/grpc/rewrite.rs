//! Options of a grpc URL as those of requests over HTTP/2.

use std::borrow::Cow;

use weir_base::Nanos;
use weir_events::StreamFormat;
use weir_grpc::metadata::{CONTENT_TYPE, check_field, timeout_text};
use weir_grpc::{GrpcSchema, MethodName};
use weir_net::target::Target;
use weir_net::wire::parse_header;
use weir_request::secret_mask::without_secrets;

use super::call::GrpcCall;
use super::options::GrpcOptions;
use super::reflection_call::reflect;
use super::schema_bytes::SchemaBytes;
use super::schema_files::schema_of_files;
use super::target::GrpcTarget;
use crate::event_streams::StreamOptions;
use crate::http2::{Http2Options, Http2Preference};
use crate::options::{Options, RequestBodySource};
use crate::plan::{PlanError, read_body};
use crate::steps::{ScenarioSource, as_single_step};
use crate::websocket::{http_url, is_websocket_url};

/// Schemes of gRPC, and those of HTTP that they become.
const SCHEMES: [(&str, &str); 2] = [("grpc://", "http://"), ("grpcs://", "https://")];

/// Fields of gRPC itself that users may set: the compression of messages.
const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Whether a URL is one of gRPC.
pub fn is_grpc_url(url: &str) -> bool {
    scheme_of(url).is_some()
}

/// Options of users of a program whose URL is one of gRPC as those of requests over HTTP/2, and of WebSocket as one of
/// HTTP; others as they are.
pub fn for_users(options: Options) -> Options {
    if is_websocket_url(&options.url) {
        let url = http_url(&options.url).into_owned();
        return Options { url, ..options };
    }
    let Some((scheme, http)) = scheme_of(&options.url) else { return options };
    let is_tls = http.starts_with("https");
    let over_tls = if is_tls { Some(Http2Preference::Required) } else { options.http2.over_tls };
    let http2 = Http2Options { over_tls, cleartext: !is_tls || options.http2.cleartext, ..options.http2 };
    Options { url: format!("{http}{}", &options.url[scheme.len()..]), http2, ..options }
}

/// Scheme of a URL of gRPC with what is behind it, and that of HTTP that it becomes.
fn scheme_of(url: &str) -> Option<(&'static str, &'static str)> {
    let is_scheme = |scheme: &str| url.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    SCHEMES.into_iter().find(|(scheme, _)| is_scheme(scheme))
}

/// Whether a plan of these options asks a server for its schema.
pub fn asks_for_schema(options: &Options) -> bool {
    let is_described = options.grpc.protoset.is_some() || !options.grpc.protos.is_empty();
    let is_made = |source: &ScenarioSource| source.made_for.is_some();
    let has_calls = is_grpc_url(&options.url) || options.scenarios.iter().any(|source| source.call.is_some());
    has_calls && !is_described && !options.grpc.is_call() && !options.scenarios.iter().any(is_made)
}

/// Options of a grpc URL as those of requests over HTTP/2; others as they are. Without files the schema is asked of the
/// server.
pub(crate) fn with_grpc(options: &Options) -> Result<Cow<'_, Options>, PlanError> {
    if options.grpc.is_call() || options.scenarios.iter().any(|source| source.made_for.is_some()) {
        return Ok(Cow::Borrowed(options));
    }
    if options.scenarios.iter().any(|source| source.call.is_some()) {
        return mixed_calls(options).map(Cow::Owned);
    }
    let made = call_options(options, &mut Vec::new())?;
    if made.grpc.message_interval.is_some()
        && made.grpc.call()?.is_some_and(|call| !call.method.kind().has_request_stream())
    {
        let why = "--message-interval is for methods that take a stream; this one takes one message";
        return Err(PlanError::Conflict(why));
    }
    Ok(made)
}

/// Schemas that are known, by origin and service.
type KnownSchemas = Vec<(String, GrpcSchema)>;

/// Options of a mix of calls as those of scenarios over HTTP/2.
fn mixed_calls(options: &Options) -> Result<Options, PlanError> {
    let mut schemas = KnownSchemas::new();
    let mut mix = Options { scenarios: Vec::new(), url: String::new(), ..options.clone() };
    for source in &options.scenarios {
        let Some(call) = &source.call else {
            let why = "a mix has calls of gRPC or .hurl files; write a file for each";
            return Err(PlanError::Conflict(why));
        };
        let one = Options {
            url: url_of(&options.url, &call.url)?,
            scenarios: Vec::new(),
            checks: Vec::new(),
            bodies: vec![RequestBodySource::Bytes(call.message.clone().into())],
            ..options.clone()
        };
        let one = call_options(&one, &mut schemas)?;
        let made_for = one.grpc.target().cloned();
        let Options { scenarios, headers, auth, http2, streams, .. } = as_single_step(&one)?;
        mix.http2.cleartext |= http2.cleartext;
        mix.http2.over_tls = mix.http2.over_tls.or(http2.over_tls);
        (mix.headers, mix.auth, mix.streams) = (headers, auth, mix.streams.or(streams));
        let method = made_for.as_ref().map_or("", |target| target.method.1.as_str());
        let title = if source.title.is_empty() { method.to_owned() } else { source.title.clone() };
        mix.scenarios.extend(scenarios.into_iter().map(|step| ScenarioSource {
            name: step.name,
            text: step.text,
            line_origins: step.line_origins,
            title: title.clone(),
            made_for: made_for.clone(),
            ..source.clone()
        }));
    }
    mix.streams = mix.streams.map(|streams| StreamOptions { format: Some(StreamFormat::Grpc), ..streams });
    Ok(mix)
}

/// URL of a call of a mix: its own, or its path behind the base URL.
fn url_of(base: &str, call: &str) -> Result<String, PlanError> {
    if is_grpc_url(call) {
        return Ok(call.to_owned());
    }
    if is_grpc_url(base) {
        return Ok(format!("{}/{}", base.trim_end_matches('/'), call.trim_start_matches('/')));
    }
    if !base.is_empty() {
        let why = format!("invalid base_url '{}' of a mix of calls; write grpc://host:port", without_secrets(base));
        return Err(PlanError::Grpc(why));
    }
    let why =
        format!("the call '{}' has no host; write base_url = \"grpc://host:port\" in [load]", call.escape_debug());
    Err(PlanError::Grpc(why))
}

/// Options of one grpc URL as those of requests over HTTP/2.
fn call_options<'o>(options: &'o Options, known: &mut KnownSchemas) -> Result<Cow<'o, Options>, PlanError> {
    let Some((scheme, http)) = scheme_of(&options.url) else {
        let why = "--proto, --proto-path, --protoset and --message-interval are for URLs of gRPC; write \
             grpc://host:port/package.Service/Method";
        return if options.grpc.is_empty() { Ok(Cow::Borrowed(options)) } else { Err(PlanError::Conflict(why)) };
    };
    check(options)?;
    // A fragment is not sent (RFC 9110, 4.2.5).
    let rest = options.url[scheme.len()..].split('#').next().unwrap_or_default();
    let url = format!("{http}{rest}");
    let target = Target::parse(&url).map_err(|error| error.in_scheme("grpc"))?;
    let name = MethodName::parse(&target.path).map_err(PlanError::Grpc)?;
    let compresses = compression(options)?;
    let schema_name = format!("{} {}", target.origin(), name.service);
    let schema = match known.iter().find(|(known, _)| *known == schema_name) {
        Some((_, schema)) => schema.clone(),
        None => match schema_of_files(&options.grpc).map_err(PlanError::Grpc)? {
            Some(schema) => schema,
            None => reflect((options, None), &target, &name.service).map_err(PlanError::Grpc)?,
        },
    };
    known.push((schema_name, schema.clone()));
    let method = schema.method(&name).map_err(PlanError::Grpc)?;
    check_messages(options, &GrpcCall { method: method.clone(), compresses })?;
    let path = method.path();
    let origin = url.get(..url.len() - target.path.len()).unwrap_or_default();
    let streams = options.streams.or_else(|| method.kind().has_response_stream().then(StreamOptions::default));
    Ok(Cow::Owned(Options {
        url: format!("{origin}{path}"),
        method: Some("POST".to_owned()),
        headers: headers(options),
        http2: Http2Options {
            over_tls: target.tls.then_some(Http2Preference::Required),
            cleartext: !target.tls,
            ..options.http2
        },
        streams: streams.map(|streams| StreamOptions { format: Some(StreamFormat::Grpc), ..streams }),
        grpc: GrpcOptions { made_for: Some(made_for(&target, name, &schema, compresses)), ..options.grpc.clone() },
        ..options.clone()
    }))
}

fn made_for(target: &Target, name: MethodName, schema: &GrpcSchema, compresses: bool) -> GrpcTarget {
    // Without user and password.
    let shown = target.url.split_once("://").map_or(target.url.as_str(), |(_, rest)| rest);
    GrpcTarget {
        url: format!("{}://{shown}", if target.tls { "grpcs" } else { "grpc" }),
        method: (name.service, name.method),
        schema: SchemaBytes(schema.to_descriptor_set()),
        compresses,
    }
}

/// Rejects options that mean nothing for calls, and metadata that is gRPC's own.
fn check(options: &Options) -> Result<(), PlanError> {
    let rules = [
        (options.method.is_some(), "--method is for HTTP; a call of gRPC has its method in the URL"),
        (options.pipeline.unwrap_or(1) > 1, "--pipeline is for HTTP/1.1; calls of gRPC have --streams"),
        (
            options.grpc.message_interval == Some(Nanos::ZERO),
            "--message-interval: invalid time 0; write e.g. 100ms, or leave it out",
        ),
        (!options.scenarios.is_empty(), "a grpc URL is for one method; leave out the scenario"),
        (options.program.is_some(), "a grpc URL is for one method; leave out the script"),
        (
            options.streams.is_some_and(|streams| streams.format.is_some()),
            "--stream has no format with gRPC; its messages are the events",
        ),
    ];
    if let Some((_, why)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
        return Err(PlanError::Conflict(why));
    }
    for line in &options.headers {
        // One with a template is checked with its values.
        if line.contains("{{") {
            continue;
        }
        let (name, value) = parse_header(line)?;
        check_metadata(name, value).map_err(|why| PlanError::Value("header", why))?;
    }
    Ok(())
}

/// Checks the messages that have no templates: others have values once they are sent.
fn check_messages(options: &Options, call: &GrpcCall) -> Result<(), PlanError> {
    for body in &options.bodies {
        let bytes = read_body(body)?;
        let has_template = matches!(body, RequestBodySource::Bytes(_)) && memchr::memmem::find(&bytes, b"{{").is_some();
        if options.no_template || !has_template {
            call.message(&bytes)?;
        }
    }
    Ok(())
}

/// Whether messages are compressed, by the metadata `grpc-encoding`.
fn compression(options: &Options) -> Result<bool, PlanError> {
    let given = options.headers.iter().filter_map(|line| parse_header(line).ok());
    let given = compression_of(given).map_err(|why| PlanError::Value("header", why))?;
    Ok(given.unwrap_or(false))
}

/// Whether messages are compressed, by the last `grpc-encoding` of fields; `None` without one.
pub(super) fn compression_of<'f>(
    fields: impl DoubleEndedIterator<Item = (&'f str, &'f str)>,
) -> Result<Option<bool>, String> {
    let mut given = fields.rev().filter(|(name, _)| name.eq_ignore_ascii_case(ENCODING));
    match given.next() {
        None => Ok(None),
        Some((_, "identity")) => Ok(Some(false)),
        Some((_, "gzip")) => Ok(Some(true)),
        Some((_, other)) => Err(format!("unknown {ENCODING} '{}'; choose gzip or identity", other.escape_debug())),
    }
}

/// Checks a field of metadata that a user gives: its name is none of gRPC's own, but for those of compression.
pub(super) fn check_metadata(name: &str, value: &str) -> Result<(), String> {
    match [ENCODING, ACCEPT_ENCODING].iter().any(|own| name.eq_ignore_ascii_case(own)) {
        true => Ok(()),
        false => check_field(name, value),
    }
}

/// Metadata of the calls, and what gRPC adds to it.
fn headers(options: &Options) -> Vec<String> {
    let mut all = options.headers.clone();
    let has = |name: &str| {
        options.headers.iter().any(|line| parse_header(line).is_ok_and(|(given, _)| given.eq_ignore_ascii_case(name)))
    };
    if !has(ACCEPT_ENCODING) {
        all.push(format!("{ACCEPT_ENCODING}: gzip"));
    }
    // Of HTTP, and nothing that a service of gRPC looks at.
    if !has("accept") {
        all.push("Accept:".to_owned());
    }
    all.push(format!("Content-Type: {CONTENT_TYPE}"));
    all.push("TE: trailers".to_owned());
    all.extend(options.timeout.map(|timeout| format!("grpc-timeout: {}", timeout_text(Nanos::from(timeout)))));
    all
}

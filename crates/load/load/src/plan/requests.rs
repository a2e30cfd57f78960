//! Requests of a plan: one for each body, with its weight.

use std::borrow::Cow;

use super::PlanError;
use crate::grpc::GrpcCall;
use crate::options::{Options, RequestBodySource};
use weir_machine::input_file;
use weir_net::target::Target;
use weir_net::wire::{WireRequest, parse_header};
use weir_request::basic_auth::{basic_authorization, typed_credentials};
use weir_request::request_framing::has_close;

pub(super) fn requests(
    options: &Options,
    target: &Target,
    method: &str,
    keep_alive: bool,
    grpc: Option<&GrpcCall>,
) -> Result<Vec<WireRequest>, PlanError> {
    let mut headers = options.headers.clone();
    if let Some(authorization) = authorization(options, target)? {
        headers.push(format!("Authorization: {authorization}"));
    }
    let bodies = options.bodies.iter().map(read_body).collect::<Result<Vec<_>, _>>()?;
    let weights = weights(options, bodies.len())?;
    let bodies = if bodies.is_empty() { vec![Vec::new()] } else { bodies };
    let bodies = match grpc {
        Some(call) => bodies.iter().map(|body| call.message(body)).collect::<Result<_, _>>()?,
        None => bodies,
    };
    let host = target.host_header();
    let build = |(body, weight): (&Vec<u8>, f64)| {
        let request = WireRequest::build(method, &target.path, &host, &headers, body, keep_alive)?;
        Ok(WireRequest { weight, ..request })
    };
    bodies.iter().zip(weights).map(build).collect()
}

/// Credentials of the options as people type them: `user:password`.
///
/// # Errors
/// There are none in the text.
pub(crate) fn typed_auth(options: &Options) -> Result<Option<Cow<'_, str>>, PlanError> {
    options.auth.as_deref().map(typed_credentials).transpose().map_err(|why| PlanError::Value("auth", why.to_owned()))
}

/// Value of `Authorization` of all requests: the credentials of the options, or else those of the URL.
pub(crate) fn authorization(options: &Options, target: &Target) -> Result<Option<String>, PlanError> {
    let typed = typed_auth(options)?;
    let credentials = typed.as_ref().map(|typed| typed.as_bytes()).or(target.userinfo.as_deref());
    Ok(credentials.map(basic_authorization))
}

/// Whether connections take further requests: neither an option nor a header of all requests says otherwise.
pub(super) fn keeps_alive(options: &Options) -> bool {
    let closes = |line: &String| {
        parse_header(line)
            .is_ok_and(|(name, value)| name.eq_ignore_ascii_case("connection") && has_close(value.as_bytes()))
    };
    !options.no_keepalive && !options.headers.iter().any(closes)
}

/// Weights of the bodies; one without a body.
pub(crate) fn weights(options: &Options, bodies: usize) -> Result<Vec<f64>, PlanError> {
    let given = &options.weights;
    if given.is_empty() {
        return Ok(vec![1.0; bodies.max(1)]);
    }
    let wrong = |why: String| Err(PlanError::Value("weights", why));
    if given.len() != bodies {
        return wrong(format!("{} weights for {bodies} bodies; give one for each", given.len()));
    }
    if given.iter().any(|w| !w.is_finite() || *w < 0.0) || given.iter().sum::<f64>() <= 0.0 {
        return wrong("weights must be 0 or more, and not all 0".into());
    }
    Ok(given.clone())
}

/// Bytes of a body; a file is read whole.
pub(crate) fn read_body(body: &RequestBodySource) -> Result<Vec<u8>, PlanError> {
    match body {
        RequestBodySource::Bytes(bytes) => Ok(bytes.clone()),
        RequestBodySource::File(path) => {
            input_file::read(path).map_err(|e| PlanError::File(path.to_string_lossy().into_owned(), e.to_string()))
        }
    }
}

/// Target of the options' URL; without one, that of a script whose requests name hosts: whether these respond shows in
/// the run.
pub(super) fn target_of_options(options: &Options) -> Result<Target, PlanError> {
    match options.naming_script() {
        Some(name) if options.url.is_empty() => Ok(Target { url: name, ..Target::of_host(false, "localhost", 80) }),
        _ => {
            let target = Target::parse(&options.url)?;
            check_tls(options, &target)?;
            Ok(target)
        }
    }
}

/// Rejects TLS options of a plain URL: they would be ignored without notice.
fn check_tls(options: &Options, target: &Target) -> Result<(), PlanError> {
    let tls = &options.tls;
    let given = tls.cacert.is_some() || tls.cert.is_some() || tls.key.is_some() || options.sni.is_some();
    if given && !target.tls {
        return Err(PlanError::Conflict("--cacert, --cert, --cert-key and --sni need an https:// URL"));
    }
    Ok(())
}

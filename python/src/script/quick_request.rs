//! Requests from the arguments that most have: a name, headers, JSON.
//!
//! Preparing them in Python costs as much as sending them. Where an argument needs more (files, forms, cookies,
//! authentication, errors), there is no request, and the caller prepares it in Python, so that there is one truth for
//! all that is rare.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::request::{ScriptRequest, header};
use super::session::ScriptSession;
use crate::json;

/// Manner of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientManner {
    /// `weir.User`.
    Own,
    /// The library requests, as Locust's HttpUser.
    Requests,
    /// Locust's FastHttpUser.
    Fast,
}

/// Request from the arguments of a method; `None` if Python has to prepare it. `timeout` is the one without another;
/// `manner` is `None` for `weir.User`, else whether it is that of FastHttpUser.
#[pyfunction]
#[pyo3(signature = (session, method, url, options, timeout=None, is_fast=None))]
pub(crate) fn quick_request(
    session: Py<ScriptSession>,
    method: &str,
    url: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
    timeout: Option<&Bound<'_, PyAny>>,
    is_fast: Option<bool>,
) -> PyResult<Option<ScriptRequest>> {
    let Ok(url) = url.cast_exact::<PyString>() else { return Ok(None) };
    let manner = match is_fast {
        None => ClientManner::Own,
        Some(false) => ClientManner::Requests,
        Some(true) => ClientManner::Fast,
    };
    let mut request = ScriptRequest::plain(session, method, url.to_str()?.to_owned());
    request.catches = manner != ClientManner::Own;
    let (mut has_json, mut timeout) = (false, timeout.cloned());
    for (name, value) in options {
        let Ok(name) = name.cast_exact::<PyString>() else { return Ok(None) };
        match name.to_str()? {
            _ if value.is_none() => {}
            "name" => match value.cast_exact::<PyString>() {
                Ok(name) if !name.to_str()?.is_empty() => request.name = Some(name.to_str()?.to_owned()),
                _ => return Ok(None),
            },
            "headers" => {
                let Ok(headers) = value.cast_exact::<PyDict>() else { return Ok(None) };
                request.headers.reserve(headers.len() + 2);
                for (name, value) in headers {
                    request.headers.push(header(&name, &value)?);
                }
            }
            "json" => {
                let Some(body) = json::write(&value) else { return Ok(None) };
                (request.body, has_json) = (Some(body), true);
            }
            "timeout" => timeout = Some(value),
            "allow_redirects" => request.follows_redirects = value.is_truthy()?,
            "catch" if manner == ClientManner::Own => request.catches = value.is_truthy()?,
            // Connections are weir's own.
            "verify" | "cert" | "proxies" | "stream" if manner != ClientManner::Own => {}
            "catch_response" if manner != ClientManner::Own => request.is_watched = value.is_truthy()?,
            _ => return Ok(None),
        }
    }
    if let Some(timeout) = timeout {
        let Ok(seconds) = timeout.extract::<f64>() else { return Ok(None) };
        request.timeout_s = Some(seconds);
    }
    let has = |request: &ScriptRequest, wanted: &str| {
        request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    match manner {
        ClientManner::Own => {}
        // Their spaces and lengths are of their own kind.
        _ if request.url.contains(' ') => return Ok(None),
        ClientManner::Requests if !has_json && !matches!(method, "GET" | "HEAD" | "POST" | "PUT" | "PATCH") => {
            return Ok(None);
        }
        ClientManner::Fast if has_json && !has(&request, "accept") => {
            request.headers.push(("Accept".into(), Some("application/json".into())));
        }
        _ => {}
    }
    if has_json && !has(&request, "content-type") {
        request.headers.push(("Content-Type".into(), Some("application/json".into())));
    }
    Ok(Some(request))
}

/// Body of an object in JSON; `None` if Python's module has to write it.
#[pyfunction]
pub(crate) fn json_body<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    json::write(value).map(|body| PyBytes::new(value.py(), &body))
}

//! A request on its way, with the redirects that it follows.

use std::borrow::Cow;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::is_grpc_status;
use weir_load::program::request::redirect::is_redirect;
use weir_load::program::request::{RequestParts, SentForm, write_request};
use weir_load::program::{ProgramResponse, RequestTimes};
use weir_load::steps::decoded_body;
use weir_machine::clock::unix_s;
use weir_request::url::HttpUrl;
use weir_scenario::cookie_jar::CookieJar;

use crate::host::exchange::{ExchangeTimes, HttpEnd, HttpRequest, HttpResult, error_code};
use crate::samples::HttpSample;

/// A request on its way.
#[derive(Debug)]
pub(super) struct HttpExchange {
    pub(super) request: Box<HttpRequest>,
    /// Method and URL of the last request, after redirects.
    pub(super) method: Cow<'static, str>,
    pub(super) url: HttpUrl,
    pub(super) step: u32,
    /// Key of the request among those of its user.
    pub(super) key: u32,
    /// Time of its send.
    pub(super) since: Nanos,
    sends_body: bool,
    has_left_origin: bool,
    redirects: u32,
}

impl HttpExchange {
    /// Exchange of a request that is counted under a step.
    pub(super) fn new(request: Box<HttpRequest>, key: u32, step: u32) -> Self {
        Self {
            method: request.method.clone(),
            url: request.url.clone(),
            request,
            step,
            key,
            since: Nanos::ZERO,
            sends_body: true,
            has_left_origin: false,
            redirects: 0,
        }
    }

    /// Writes the bytes of the request, with header lines of all requests and the cookies of a jar.
    ///
    /// # Errors
    /// One line, if a part would break the request.
    pub(super) fn write(&self, head: &[u8], jar: &mut CookieJar, out: &mut Vec<u8>) -> Result<(), String> {
        let parts = RequestParts { headers: &self.request.headers, body: self.request.body.as_deref() };
        let form = SentForm {
            method: &self.method,
            url: &self.url,
            sends_body: self.sends_body,
            has_left_origin: self.has_left_origin,
            withheld: &[],
        };
        write_request(parts, (head, jar, unix_s() as i64), form, out)
    }

    /// Stores the cookies of a response; returns the encoding of its body.
    pub(super) fn read_head(&self, response: &ProgramResponse<'_>, jar: &mut CookieJar) -> Option<Vec<u8>> {
        response.with_headers(|fields| {
            let mut encoding = None;
            for (name, value) in fields {
                if name.eq_ignore_ascii_case("set-cookie") {
                    // An ignored cookie is common and no failure.
                    let _ = jar.store(value, &self.url, unix_s() as i64);
                } else if name.eq_ignore_ascii_case("content-encoding") {
                    encoding = Some(value.to_vec());
                }
            }
            encoding
        })
    }

    /// Goes on to where a response redirects, if the request follows it, by the rules of Go's client.
    ///
    /// # Errors
    /// One line, if the location is invalid.
    pub(super) fn follow(&mut self, response: &ProgramResponse<'_>) -> Result<bool, String> {
        if !is_redirect(response.status) || self.redirects >= self.request.max_redirects {
            return Ok(false);
        }
        let location = response.with_headers(|fields| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
            found.map(|(_, value)| self.url.resolve(value).map_err(|error| format!("redirect: {error}")))
        });
        let Some(url) = location.transpose()? else { return Ok(false) };
        self.redirects += 1;
        self.has_left_origin |= !self.url.credential_origin().shares_credentials_with(&url.credential_origin());
        if !matches!(response.status, 307 | 308) {
            self.sends_body = false;
            if self.method != "HEAD" {
                self.method = Cow::Borrowed("GET");
            }
        }
        self.url = url;
        Ok(true)
    }

    /// The request for the metrics, with its status, or with what has failed.
    pub(super) fn sample(&self, status: u16, kind: Option<FailureKind>, times: ExchangeTimes) -> HttpSample<'_> {
        let of_status = if status >= 400 { 1000 + u32::from(status) } else { 0 };
        let error_code = kind.map_or(of_status, error_code);
        HttpSample { request: &self.request, method: &self.method, url: &self.url, status, error_code, times }
    }

    /// Status of a response; of a call that of gRPC, unless it is a failure of HTTP.
    pub(super) fn status_of(&self, response: &ProgramResponse<'_>) -> u16 {
        if !self.request.is_call {
            return response.status;
        }
        let code = response.with_headers(|fields| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("grpc-status"));
            found.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok())
        });
        code.filter(|code| is_grpc_status(*code)).unwrap_or(response.status)
    }

    /// Result of a response, whose body has this encoding.
    pub(super) fn into_result(self, response: &ProgramResponse<'_>, encoding: Option<&[u8]>) -> HttpResult {
        let times = times(response);
        let body = match self.request.discards_body {
            true => Ok(None),
            false => decoded_body(response.body, encoding).map(|body| Some(body.into_owned())),
        };
        let end = match body {
            Ok(body) => HttpEnd::Response(self.status_of(response), response.head.to_vec(), body),
            Err(why) => HttpEnd::Failed(FailureKind::Body, why),
        };
        HttpResult { end, url: self.url, times, method: self.method, request: self.request }
    }

    /// Result of a request without a response.
    pub(super) fn into_failure(self, kind: FailureKind, why: String, service: Nanos) -> HttpResult {
        let times = ExchangeTimes { service, ..ExchangeTimes::default() };
        HttpResult { end: HttpEnd::Failed(kind, why), url: self.url, times, method: self.method, request: self.request }
    }
}

/// Times of a response.
pub(super) fn times(response: &ProgramResponse<'_>) -> ExchangeTimes {
    let RequestTimes { service, first_byte, connect } = response.times;
    ExchangeTimes { service, first_byte, connect }
}

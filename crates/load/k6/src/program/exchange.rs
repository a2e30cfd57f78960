//! A request on its way, with the redirects that it follows.

use std::borrow::Cow;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::is_grpc_status;
use weir_load::program::request::redirect::is_redirect;
use weir_load::program::request::{RequestParts, SentForm, SessionParts, write_request};
use weir_load::program::{ProgramResponse, RequestTimes};
use weir_load::steps::decoded_body;
use weir_machine::clock::{self, unix_s};
use weir_request::url::HttpUrl;
use weir_scenario::cookie_jar::CookieJar;
use weir_scenario::plan::DigestRequest;

use crate::host::exchange::{AUTHORIZATION, HttpEnd, HttpRequest, HttpResult, error_code};
use crate::samples::HttpSample;

/// Status of a challenge.
const UNAUTHORIZED: u16 = 401;

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
    /// Whether it has credentials for a challenge.
    has_credentials: bool,
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
            has_credentials: false,
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
        write_request(parts, SessionParts { head, jar, unix_s: unix_s() as i64 }, form, out)
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
        if self.has_credentials {
            // Another place has a challenge of its own.
            self.has_credentials = false;
            self.authorize(None);
        }
        Ok(true)
    }

    /// Takes a challenge of digest authentication, if the request does; whether it is sent again, with credentials.
    pub(super) fn take_challenge(&mut self, response: &ProgramResponse<'_>) -> bool {
        if response.status != UNAUTHORIZED || !self.request.has_digest || self.has_credentials || self.has_left_origin {
            return false;
        }
        let Some(credentials) = self.request.url.userinfo() else { return false };
        let credentials = String::from_utf8_lossy(credentials);
        let target = String::from_utf8_lossy(self.url.target());
        let nonce = clock::monotonic().0.wrapping_add(self.key.into());
        let request = DigestRequest { credentials: &credentials, method: &self.method, target: &target, nonce };
        let credentials = response.with_headers(|fields| {
            let mut challenges = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
            challenges.find_map(|(_, field)| request.answer(std::str::from_utf8(field).ok()?))
        });
        self.has_credentials = credentials.is_some();
        if self.has_credentials {
            self.authorize(credentials);
        }
        self.has_credentials
    }

    fn authorize(&mut self, value: Option<String>) {
        let headers = self.request.headers.iter_mut();
        if let Some((_, given)) = headers.rev().find(|(name, _)| name == AUTHORIZATION) {
            *given = value;
        }
    }

    /// The request without a response for the metrics.
    pub(super) fn failed_sample(&self, kind: FailureKind, times: RequestTimes) -> HttpSample<'_> {
        let (request, method, url) = (&*self.request, &*self.method, &self.url);
        HttpSample { request, method, url, status: 0, error_code: error_code(kind), times, head: b"", connection: None }
    }

    /// The request with its response for the metrics.
    pub(super) fn sample<'s>(&'s self, response: &'s ProgramResponse<'_>) -> HttpSample<'s> {
        let status = self.status_of(response);
        HttpSample {
            request: &self.request,
            method: &self.method,
            url: &self.url,
            status,
            error_code: if status >= 400 { 1000 + u32::from(status) } else { 0 },
            times: response.times,
            head: response.head,
            connection: response.connection.map(|connection| &**connection),
        }
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
        let times = response.times;
        let body = match self.request.discards_body {
            true => Ok(None),
            false => decoded_body(response.body, encoding).map(|body| Some(body.into_owned())),
        };
        let end = match body {
            Ok(body) => HttpEnd::Response(self.status_of(response), response.head.to_vec(), body),
            Err(why) => HttpEnd::Failed(FailureKind::Body, why),
        };
        let connection = response.connection.map(Arc::clone);
        HttpResult { end, url: self.url, times, method: self.method, request: self.request, connection }
    }

    /// Result of a request without a response.
    pub(super) fn into_failure(self, kind: FailureKind, why: String, service: Nanos) -> HttpResult {
        let times = RequestTimes { service, ..RequestTimes::default() };
        let Self { url, method, request, .. } = self;
        HttpResult { end: HttpEnd::Failed(kind, why), url, times, method, request, connection: None }
    }
}

//! The reply to a call: the upstream's response as a route changes it, or one of the gateway's own.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use http_body::Body as _;

use super::headers;
use super::local_responses;
use super::request_limits::body_too_large;
use super::routed::RoutedRequest;
use super::sent_request::CallTerms;
use weir_call::{CallBody, CallFailure, CallFailureReason, CallResponse, UpstreamResponse};
use weir_server::{RequestBody, ResponseBody, ServiceReply};

impl RoutedRequest<'_> {
    /// The reply to a request whose body is not wanted: it is too large, or its call would be rejected anyway.
    pub(super) fn early_reply(
        &self,
        parts: &Parts,
        headers: &HeaderMap,
        body: &RequestBody,
        terms: CallTerms,
    ) -> Option<ServiceReply> {
        if let Some(too_large) = self.route.limits.check_body(body.size_hint().lower()) {
            return Some(self.own(too_large));
        }
        if body.is_end_stream() {
            return None;
        }
        let priority = self.decision.verdict.priority;
        let of_culprit = self.shed_culprit_early(priority);
        let failed =
            of_culprit.or_else(|| self.engine.shed_early(self.plan, priority, terms.spread, terms.deadline))?;
        Some(self.reject(parts, headers, failed))
    }

    pub(super) fn success_reply(&self, response: CallResponse, upgrade: Option<&HeaderValue>) -> ServiceReply {
        let CallResponse { mut head, passed, body, .. } = response;
        if let Some(protocol) = upgrade.filter(|_| head.status == StatusCode::SWITCHING_PROTOCOLS) {
            return self.switch_reply(head.headers, body, protocol);
        }
        self.edit_response(head.status, &mut head.headers);
        let body = match self.route.merge() {
            Some(merge) => body.map_buffered(|bytes| merge.apply(bytes)).inspect(|_| {
                head.headers.remove(header::CONTENT_LENGTH);
            }),
            None => Err(body),
        };
        let body = body.unwrap_or_else(|body| body);
        head.version = Version::HTTP_11;
        let body = self.count_tokens(head.status, self.server_body(body));
        Response::from_parts(head, body.with_passed_fields(passed)).into()
    }

    /// The reply to a request that switches to another protocol.
    fn switch_reply(&self, mut headers: HeaderMap, body: CallBody, protocol: &HeaderValue) -> ServiceReply {
        let Some(tunnel) = body.into_upgraded() else {
            let response = local_responses::text(StatusCode::BAD_GATEWAY, "the upstream did not switch protocols");
            return self.decision.error_format.format(response).into();
        };
        self.edit_response(StatusCode::SWITCHING_PROTOCOLS, &mut headers);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
        let mut switch = Response::new(ResponseBody::empty());
        *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *switch.headers_mut() = headers;
        ServiceReply::Upgrade(switch, Box::new(tunnel))
    }

    /// Turns the headers of an upstream's response into the caller's: without those of the connection, with the route's
    /// changes and the cookie of the caller's side.
    pub(super) fn edit_response(&self, status: StatusCode, headers: &mut HeaderMap) {
        headers::remove_hop_by_hop(headers);
        headers::remove_content_headers(status, headers);
        self.route.rewrite_response(headers);
        if let Some(cookie) = &self.decision.side.set_cookie {
            headers.append(header::SET_COOKIE, cookie.clone());
        }
    }

    pub(super) fn failure_response(&self, failed: CallFailure, is_too_large: bool) -> Response<ResponseBody> {
        let CallFailure { reason, last_response, call_trace } = failed;
        match reason {
            CallFailureReason::DeadlineExceeded => return self.route.deadline_response(self.decision.error_format),
            CallFailureReason::Rejected(rejection) => {
                return self.route.rejection_response(self.decision.error_format, rejection, || self.too_many_tokens());
            }
            CallFailureReason::AllFailed => self.note_no_response(),
        }
        if let Some(max) = self.route.limits.max_body_bytes.filter(|_| is_too_large) {
            return self.decision.error_format.format(body_too_large(max));
        }
        if let Some(bad) = local_responses::bad_request(&call_trace) {
            return self.decision.error_format.format(bad);
        }
        if let Some(own) = self.route.failure_response(self.decision.error_format) {
            return own;
        }
        match last_response {
            Some(UpstreamResponse { mut head, passed, body }) => {
                self.edit_response(head.status, &mut head.headers);
                head.version = Version::HTTP_11;
                let body = self.count_tokens(head.status, self.server_body(body));
                Response::from_parts(head, body.with_passed_fields(passed))
            }
            None => self.decision.error_format.format(local_responses::no_response(&call_trace)),
        }
    }
}

//! The reply to a call: the upstream's response as a route changes it, or one of the gateway's own.

use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};

use super::headers;
use super::local_responses;
use super::request_limits::body_too_large;
use super::routed::RoutedRequest;
use weir_call::{CallBody, CallFailure, CallFailureReason, CallResponse, UpstreamResponse};
use weir_server::{ResponseBody, ServiceReply};

impl RoutedRequest<'_> {
    pub(super) fn success_reply(&self, response: CallResponse, upgrade: Option<&HeaderValue>) -> ServiceReply {
        let CallResponse { mut head, passed, body, .. } = response;
        if let Some(protocol) = upgrade.filter(|_| head.status == StatusCode::SWITCHING_PROTOCOLS) {
            return self.switch_reply(head.headers, body, protocol);
        }
        headers::remove_hop_by_hop(&mut head.headers);
        headers::remove_content_headers(head.status, &mut head.headers);
        self.edit_response(&mut head.headers);
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
            return self.error_format.format(response).into();
        };
        headers::remove_hop_by_hop(&mut headers);
        headers::remove_content_headers(StatusCode::SWITCHING_PROTOCOLS, &mut headers);
        self.edit_response(&mut headers);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
        let mut switch = Response::new(ResponseBody::empty());
        *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *switch.headers_mut() = headers;
        ServiceReply::Upgrade(switch, Box::new(tunnel))
    }

    /// The route's changes to an upstream's response, and the cookie of the caller's side.
    fn edit_response(&self, headers: &mut HeaderMap) {
        self.route.rewrite_response(headers);
        if let Some(cookie) = &self.set_cookie {
            headers.append(header::SET_COOKIE, cookie.clone());
        }
    }

    pub(super) fn failure_response(&self, failed: CallFailure, is_too_large: bool) -> Response<ResponseBody> {
        let CallFailure { reason, last_response, call_trace } = failed;
        match reason {
            CallFailureReason::DeadlineExceeded => return self.route.deadline_response(self.error_format),
            CallFailureReason::Rejected(rejection) => {
                return self.route.rejection_response(self.error_format, rejection, || self.too_many_tokens());
            }
            CallFailureReason::AllFailed => self.note_no_response(),
        }
        if let Some(max) = self.route.limits.max_body_bytes.filter(|_| is_too_large) {
            return self.error_format.format(body_too_large(max));
        }
        if let Some(bad) = local_responses::bad_request(&call_trace) {
            return self.error_format.format(bad);
        }
        if let Some(own) = self.route.failure_response(self.error_format) {
            return own;
        }
        match last_response {
            Some(UpstreamResponse { mut head, passed, body }) => {
                headers::remove_hop_by_hop(&mut head.headers);
                headers::remove_content_headers(head.status, &mut head.headers);
                self.edit_response(&mut head.headers);
                head.version = Version::HTTP_11;
                let body = self.count_tokens(head.status, self.server_body(body));
                Response::from_parts(head, body.with_passed_fields(passed))
            }
            None => self.error_format.format(local_responses::no_response(&call_trace)),
        }
    }
}

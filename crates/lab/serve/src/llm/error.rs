//! Errors in the shape of each API.

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::json;

use crate::responses::{CONTENT_TYPE_JSON, response};
use weir_base::Nanos;
use weir_events::llm::LlmApi;
use weir_server::ResponseBody;

/// Error of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LlmError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// Parameter at fault.
    pub(super) parameter: Option<&'static str>,
    /// Code of OpenAI.
    pub(super) code: Option<&'static str>,
    /// Time until the same request would be accepted.
    pub(super) retry_after: Option<Nanos>,
}

impl LlmError {
    fn new(status: StatusCode, message: String, code: Option<&'static str>) -> Self {
        Self { status, message, parameter: None, code, retry_after: None }
    }

    /// 400: an invalid request.
    pub(super) fn invalid(message: String, parameter: Option<&'static str>) -> Self {
        Self { parameter, ..Self::new(StatusCode::BAD_REQUEST, message, None) }
    }

    /// 400: prompt and response are too long.
    pub(super) fn too_long(tokens: u64, maximum: u64) -> Self {
        let message =
            format!("This model's maximum context length is {maximum} tokens, and the request needs {tokens}.");
        let error = Self::new(StatusCode::BAD_REQUEST, message, Some("context_length_exceeded"));
        Self { parameter: Some("messages"), ..error }
    }

    /// 401: no API key, or an unknown one.
    pub(super) fn unauthorized(is_missing: bool) -> Self {
        let message = if is_missing { "You didn't provide an API key." } else { "Incorrect API key provided." };
        Self::new(StatusCode::UNAUTHORIZED, message.to_owned(), Some("invalid_api_key"))
    }

    /// 404: an unknown model.
    pub(super) fn unknown_model(name: &str) -> Self {
        let message = format!("The model `{name}` does not exist or you do not have access to it.");
        Self { parameter: Some("model"), ..Self::new(StatusCode::NOT_FOUND, message, Some("model_not_found")) }
    }

    /// 404: an unknown path.
    pub(super) fn unknown_path(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Invalid URL ({path})"), None)
    }

    /// 405: another method than the path has.
    pub(super) fn wrong_method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Not allowed to use this method on this URL.".to_owned(), None)
    }

    /// 429: too many requests, or tokens.
    pub(super) fn limited(what: &str, retry_after: Option<Nanos>) -> Self {
        let message = match retry_after {
            Some(time) => format!("Rate limit reached on {what} per min. Please try again in {time}."),
            None => format!("Request too large: it exceeds the limit on {what} per min."),
        };
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, message, Some("rate_limit_exceeded"));
        Self { retry_after, ..error }
    }

    /// 500: a fault on purpose.
    pub(super) fn internal() -> Self {
        let message = "The server had an error while processing your request.".to_owned();
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message, None)
    }

    /// Response in the shape of an API.
    pub(super) fn response(&self, api: LlmApi) -> Response<ResponseBody> {
        let body = if api == LlmApi::Messages {
            json!({"type": "error", "error": {"type": self.anthropic_type(), "message": self.message}})
        } else {
            json!({"error": {
                "message": self.message,
                "type": self.openai_type(),
                "param": self.parameter,
                "code": self.code,
            }})
        };
        let mut reply = response(self.status, CONTENT_TYPE_JSON, body.to_string());
        if let Some(time) = self.retry_after {
            let headers = reply.headers_mut();
            // In whole seconds, by RFC 9110; and exactly, as OpenAI's libraries prefer.
            headers.insert(http::header::RETRY_AFTER, HeaderValue::from(time.0.div_ceil(Nanos::SECOND.0)));
            let ms = HeaderName::from_static("retry-after-ms");
            headers.insert(ms, HeaderValue::from(time.0.div_ceil(Nanos::MILLI.0)));
        }
        reply
    }

    fn openai_type(&self) -> &'static str {
        match self.status.as_u16() {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }

    fn anthropic_type(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }
}

//! Steps of a scenario.

use weir_hurl::TextPosition;

use super::checks::StepChecks;
use super::options::StepOptions;
use super::request_template::{RequestTarget, RequestTemplate};
use super::stream_end::StreamEndRule;
use weir_request::url::HttpUrl;

/// Step of a scenario: a request, what its response must be, and what is taken from it.
#[derive(Clone, Debug)]
pub struct ScenarioStep {
    /// Name, unique in the scenario.
    pub name: String,
    /// Place of the request in the file.
    pub position: TextPosition,
    /// Captures and checks.
    pub checks: StepChecks,
    /// When a response that is a stream is ended on purpose.
    pub stream_end: StreamEndRule,
    pub(super) request: RequestTemplate,
    pub(super) options: StepOptions,
}

impl ScenarioStep {
    /// Method of the step's own requests; one after a redirect may be a GET.
    pub fn method(&self) -> &str {
        &self.request.method
    }

    /// URL as it is written, such as `http://shop/items/{{id}}`; variables that nothing changes have their values.
    pub fn url_text(&self) -> &str {
        &self.request.url_text
    }
}

impl RequestTemplate {
    /// URL of a request whose URL never changes.
    pub(super) fn fixed_url(&self) -> Option<&HttpUrl> {
        match &self.target {
            RequestTarget::Fixed { url, .. } => Some(url),
            RequestTarget::Dynamic { .. } => None,
        }
    }
}

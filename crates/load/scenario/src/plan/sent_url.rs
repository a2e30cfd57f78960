//! URLs of requests that were sent.

use super::step::ScenarioStep;
use weir_request::url::{DotSegments, HttpUrl, UrlError};

/// URL of a user's last request: the one of its step, which never changes, or another one in memory that is used again.
#[derive(Clone, Debug, Default)]
pub(super) struct SentUrl {
    url: Option<HttpUrl>,
    is_own: bool,
}

impl SentUrl {
    /// URL of the last request, which was one of this step.
    pub(super) fn get<'u>(&'u self, step: &'u ScenarioStep) -> Option<&'u HttpUrl> {
        if self.is_own { self.url.as_ref() } else { step.request.fixed_url() }
    }

    /// Makes the URL the one of the step.
    pub(super) fn set_fixed(&mut self) {
        self.is_own = false;
    }

    /// Makes a parsed text the URL.
    pub(super) fn assign(&mut self, text: &[u8], dot_segments: DotSegments) -> Result<&HttpUrl, UrlError> {
        let url = match self.url.take() {
            Some(mut url) => url.assign(text, dot_segments).map(|()| url)?,
            None => HttpUrl::parse_with(text, dot_segments)?,
        };
        self.is_own = true;
        Ok(self.url.insert(url))
    }

    /// Replaces the URL.
    pub(super) fn set(&mut self, url: HttpUrl) {
        self.url = Some(url);
        self.is_own = true;
    }
}

//! Lanes: queues of jobs by host, and by pinned key.

use std::borrow::Cow;

use crate::job::{Job, JobRequest};
use weir_request::url_text::UrlText;

/// Lane of queued jobs. The default one has jobs whose URL has no host.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobLane {
    /// Pinned key; `None` for jobs that any key may send.
    pub key_hint: Option<String>,
    /// Host, as of [`JobRequest::host`].
    pub host: String,
}

/// Maximum lanes in a reply to a claim; the next one has those after them.
pub const MAX_CLAIM_LANES: usize = 256;

impl JobLane {
    /// Lane of a job.
    pub fn of(job: &Job) -> Self {
        Self { key_hint: job.key_hint.clone(), host: job.request.host().into_owned() }
    }

    /// Whether a job is in this lane.
    pub fn has(&self, job: &Job) -> bool {
        self.key_hint == job.key_hint && self.host == job.request.host()
    }

    /// Text that [`Self::read`] parses: `KEY@HOST`. Names of keys have no `@`.
    pub(super) fn to_text(&self) -> String {
        format!("{}@{}", self.key_hint.as_deref().unwrap_or_default(), self.host)
    }

    pub(super) fn read(word: &str) -> Self {
        let (hint, host) = word.split_once('@').unwrap_or((word, ""));
        Self { key_hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()), host: host.to_owned() }
    }

    /// Number of queued jobs by key, over all hosts; `None` first.
    pub(super) fn by_key(lanes: impl Iterator<Item = (Self, u64)>) -> Vec<(Option<String>, u64)> {
        let mut sums = std::collections::BTreeMap::new();
        for (lane, jobs) in lanes {
            *sums.entry(lane.key_hint).or_default() += jobs;
        }
        sums.into_iter().collect()
    }
}

impl JobRequest {
    /// Host of the URL, in lower case, with a non-default port; empty without one.
    pub fn host(&self) -> Cow<'_, str> {
        let text = UrlText::of(&self.url);
        let Some(scheme) = text.scheme else { return Cow::Borrowed("") };
        let host = text.host();
        let own = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
        let host = host.strip_suffix(own).unwrap_or(host);
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_read_as_it_is_written() {
        for (key, host) in [(None, ""), (None, "a.example"), (Some("bob"), ""), (Some("bob"), "[::1]:80")] {
            let lane = JobLane { key_hint: key.map(str::to_owned), host: host.into() };
            assert_eq!(JobLane::read(&lane.to_text()), lane);
        }
    }

    #[test]
    fn the_host_is_that_of_the_url() {
        let host = |url: &str| JobRequest { url: url.into(), ..JobRequest::default() }.host().into_owned();
        assert_eq!(host("http://A.Example/x?y"), "a.example");
        assert_eq!(host("https://a.example:443?x=http://b"), "a.example");
        assert_eq!(host("http://u:p@a.example:8080/@b"), "a.example:8080");
        assert_eq!(host("http://[::1]:9999/"), "[::1]:9999");
        assert_eq!(host("/path"), "");
    }
}

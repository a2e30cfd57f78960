//! Origin to which the credentials of the settings belong.

use weir_hurl::ParseError;
use weir_request::origin::CredentialOrigin;

use super::origin::{OriginId, OriginTable, RequestOrigin};
use super::problem;
use super::settings::ScenarioSettings;
use super::step::ScenarioStep;
use weir_request::url::HttpUrl;

/// Origin to which the credentials of the settings belong: that of the URL before paths, or the only one that the file
/// names. Where all hosts of a file are in variables, it is the first one that an iteration sends to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CredentialHome<'a> {
    /// Origin that the plan knows.
    pub(super) of_plan: Option<&'a RequestOrigin>,
    /// Origin of the iteration's first request; `None` before it.
    pub(super) first_sent: Option<OriginId>,
}

/// Destination of a rendered request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderedTarget {
    pub(super) origin: OriginId,
    /// Whether the request has the credentials of the settings besides its own.
    pub(super) is_home: bool,
}

impl CredentialHome<'_> {
    /// Whether the credentials may go to a URL.
    pub(super) fn includes(self, url: &HttpUrl, origins: &OriginTable) -> bool {
        let home = self.of_plan.or_else(|| self.first_sent.and_then(|id| origins.get(id)));
        home.is_none_or(|home| home.credential_origin().shares_credentials_with(&url.credential_origin()))
    }
}

impl RequestOrigin {
    /// Origin of a URL.
    pub fn of(url: &HttpUrl) -> Self {
        Self { is_tls: url.is_tls(), host: url.host().to_owned(), port: url.port() }
    }

    /// Origin to which credentials belong.
    pub fn credential_origin(&self) -> CredentialOrigin<'_> {
        CredentialOrigin { is_tls: self.is_tls, host: &self.host, port: self.port }
    }
}

/// Origin of the settings' credentials, as far as it is known before the load.
///
/// # Errors
/// If the settings have credentials, and nothing says to which of several origins they belong.
pub(super) fn home_of(
    settings: &ScenarioSettings,
    steps: &[ScenarioStep],
) -> Result<Option<RequestOrigin>, ParseError> {
    if let Some(url) = settings.base_url.as_ref().and_then(|url| HttpUrl::parse(url.as_bytes()).ok()) {
        return Ok(Some(RequestOrigin::of(&url)));
    }
    let mut known = steps.iter().filter_map(|step| Some((step.position, step.request.origin.as_ref()?)));
    let Some((_, first)) = known.next() else { return Ok(None) };
    let is_other = |(_, origin): &(_, &RequestOrigin)| {
        !first.credential_origin().shares_credentials_with(&origin.credential_origin())
    };
    match (settings.secret_header(), known.find(is_other)) {
        (Some(name), Some((position, other))) => {
            let expected = format!("one host for {name} of the command line");
            let found = format!("{first} and {other}");
            let hint = format!("write the URL to which it belongs before -s, e.g. weir load {first} -s FILE");
            Err(problem(position, expected, found, hint))
        }
        _ => Ok(Some(first.clone())),
    }
}

//! Errors of a plan.

use std::fmt;

use weir_net::target::TargetError;
use weir_net::tls::TlsError;
use weir_net::wire::RequestError;
use weir_request::url::{UrlError, UrlProblem};

use crate::url_schemes;

/// Invalid option of a load; the text names the value and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// The URL is invalid or cannot be resolved.
    Target(TargetError),
    /// TLS cannot be configured.
    Tls(TlsError),
    /// The request is invalid.
    Request(RequestError),
    /// A value is out of its range.
    Value(&'static str, String),
    /// Two options that do not go together.
    Conflict(&'static str),
    /// Mistakes of a scenario, each with its line.
    Scenario(String),
    /// A call of gRPC that cannot be made, with the remedy.
    Grpc(String),
    /// A file that cannot be read.
    File(String, String),
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(TargetError::Url(UrlError { url, problem: UrlProblem::UnknownScheme(scheme) })) => {
                url_schemes::unknown(f, url, scheme)
            }
            Self::Target(e) => e.fmt(f),
            Self::Tls(e) => e.fmt(f),
            Self::Request(e) => e.fmt(f),
            Self::Value(option, why) => write!(f, "--{option}: {why}"),
            Self::Conflict(why) => f.write_str(why),
            Self::Scenario(mistakes) => f.write_str(mistakes),
            Self::Grpc(why) => f.write_str(why),
            Self::File(path, why) => write!(f, "cannot read body file '{path}': {why}"),
        }
    }
}

impl From<TargetError> for PlanError {
    fn from(e: TargetError) -> Self {
        Self::Target(e)
    }
}

impl From<UrlError> for PlanError {
    fn from(e: UrlError) -> Self {
        Self::Target(e.into())
    }
}

impl From<TlsError> for PlanError {
    fn from(e: TlsError) -> Self {
        Self::Tls(e)
    }
}

impl From<RequestError> for PlanError {
    fn from(e: RequestError) -> Self {
        Self::Request(e)
    }
}

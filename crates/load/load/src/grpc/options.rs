//! Options of calls of gRPC.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_base::Nanos;

use super::call::GrpcCall;
use super::target::GrpcTarget;
use crate::plan::PlanError;

/// Options of calls of gRPC: where the schema of the service is from, without files from the server; and when messages are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrpcOptions {
    /// Files that describe the service.
    pub protos: Vec<PathBuf>,
    /// Folders of these files and their imports; the current one without any.
    pub proto_paths: Vec<PathBuf>,
    /// File with a descriptor set.
    pub protoset: Option<PathBuf>,
    /// Time between the messages of a call; they are sent together without one.
    pub message_interval: Option<Nanos>,
    /// The call that the options of requests were made for.
    pub(crate) made_for: Option<GrpcTarget>,
}

impl GrpcOptions {
    /// Schema from these files, in these folders, or from a descriptor set.
    pub fn of_files(protos: Vec<PathBuf>, proto_paths: Vec<PathBuf>, protoset: Option<PathBuf>) -> Self {
        Self { protos, proto_paths, protoset, message_interval: None, made_for: None }
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether requests are calls.
    pub(crate) fn is_call(&self) -> bool {
        self.made_for.is_some()
    }

    /// The call that the options of requests were made for.
    pub(crate) fn target(&self) -> Option<&GrpcTarget> {
        self.made_for.as_ref()
    }

    /// URL for results; `of_requests` if there are no calls.
    pub(crate) fn shown_url(&self, of_requests: String) -> String {
        self.made_for.as_ref().map_or(of_requests, |target| target.url.clone())
    }

    /// The call, if requests are such.
    ///
    /// # Errors
    /// The schema does not have it.
    pub(crate) fn call(&self) -> Result<Option<GrpcCall>, PlanError> {
        self.made_for.as_ref().map(|target| target.call().map_err(PlanError::Grpc)).transpose()
    }
}

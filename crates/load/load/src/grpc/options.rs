//! Options of calls of gRPC.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_grpc::{GrpcSchema, MethodName};

use super::call::GrpcCall;
use super::schema_bytes::SchemaBytes;
use crate::plan::PlanError;

/// Options of calls of gRPC: where the schema of the service is from. Without files it is from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrpcOptions {
    /// Files that describe the service.
    pub protos: Vec<PathBuf>,
    /// Folders of these files and their imports; the current one without any.
    pub proto_paths: Vec<PathBuf>,
    /// File with a descriptor set.
    pub protoset: Option<PathBuf>,
    /// The call that the options of requests were made for.
    pub(crate) made_for: Option<GrpcTarget>,
}

/// A call whose schema is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrpcTarget {
    /// URL of gRPC.
    pub(crate) url: String,
    /// Full name of the service, and name of the method.
    pub(crate) method: (String, String),
    /// Descriptor set.
    pub(crate) schema: SchemaBytes,
    /// Whether messages are compressed.
    pub(crate) compresses: bool,
}

impl GrpcOptions {
    /// Schema from these files, in these folders, or from a descriptor set.
    pub fn of_files(protos: Vec<PathBuf>, proto_paths: Vec<PathBuf>, protoset: Option<PathBuf>) -> Self {
        Self { protos, proto_paths, protoset, made_for: None }
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether requests are calls.
    pub(crate) fn is_call(&self) -> bool {
        self.made_for.is_some()
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
        let Some(target) = &self.made_for else { return Ok(None) };
        let schema = GrpcSchema::from_descriptor_set(&target.schema.0).map_err(PlanError::Grpc)?;
        let (service, method) = target.method.clone();
        let method = schema.method(&MethodName { service, method }).map_err(PlanError::Grpc)?;
        Ok(Some(GrpcCall { method, compresses: target.compresses }))
    }
}

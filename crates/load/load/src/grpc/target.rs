//! A call whose schema is known.

use serde::{Deserialize, Serialize};
use weir_grpc::{GrpcSchema, MethodName};

use super::call::GrpcCall;
use super::schema_bytes::SchemaBytes;

/// A call whose schema is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrpcTarget {
    /// URL of gRPC.
    pub(crate) url: String,
    /// Full name of the service, and name of the method.
    pub(crate) method: (String, String),
    /// Descriptor set.
    pub(crate) schema: SchemaBytes,
    /// Whether messages are compressed.
    pub(crate) compresses: bool,
}

impl GrpcTarget {
    /// Full name of the method: `package.Service/Method`.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.method.0, self.method.1)
    }

    /// The call.
    ///
    /// # Errors
    /// One line: the schema does not have it.
    pub(crate) fn call(&self) -> Result<GrpcCall, String> {
        let schema = GrpcSchema::from_descriptor_set(&self.schema.0)?;
        let (service, method) = self.method.clone();
        let method = schema.method(&MethodName { service, method })?;
        Ok(GrpcCall { method, compresses: self.compresses })
    }
}

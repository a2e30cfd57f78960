//! Bytes of a descriptor set.

use serde::{Deserialize, Serialize};

use crate::base64_bytes;

/// Bytes of a descriptor set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchemaBytes(#[serde(with = "base64_bytes")] pub(crate) Vec<u8>);

//! Descriptor sets, checked before the library reads them.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use prost::Message;
use prost_reflect::DescriptorPool;

/// What is needed of a file's description: its name, imports and syntax.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FileHead {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) imports: Vec<String>,
    #[prost(string, tag = "12")]
    pub(super) syntax: String,
}

/// A descriptor set of files as bytes.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FileSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

impl FileSet {
    /// Descriptors of the files.
    ///
    /// # Errors
    /// What is wrong with them, within a line.
    pub(super) fn pool(&self) -> Result<DescriptorPool, String> {
        let heads = self.files.iter().map(|bytes| FileHead::decode(bytes.as_slice())).collect::<Result<Vec<_>, _>>();
        let heads = heads.map_err(|error| error.to_string())?;
        let names: BTreeSet<&str> = heads.iter().map(|head| head.name.as_str()).collect();
        for FileHead { name, imports, syntax } in &heads {
            let name = name.escape_debug();
            match syntax.as_str() {
                "" | "proto2" | "proto3" => {}
                "editions" => return Err(format!("'{name}' has an edition of protobuf; proto2 and proto3 are read")),
                other => return Err(format!("'{name}' has the unknown syntax '{}'", other.escape_debug())),
            }
            if let Some(missing) = imports.iter().find(|import| !names.contains(import.as_str())) {
                return Err(format!("'{name}' imports '{}', which is not in it", missing.escape_debug()));
            }
        }
        let bytes = self.encode_to_vec();
        // The library panics on some sets that a server may send, where it has to name the place of a mistake.
        match catch_unwind(|| DescriptorPool::decode(bytes.as_slice())) {
            Ok(Ok(pool)) => Ok(pool),
            Ok(Err(error)) => Err(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
            Err(_) => Err("it is invalid".to_owned()),
        }
    }
}

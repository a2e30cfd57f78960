//! Reflection: the schema of a service from the server itself.

use std::collections::BTreeSet;

use prost::Message;

use super::file_set::{FileHead, FileSet};
use super::schema::{GrpcSchema, unknown_service};

/// Version of the reflection service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReflectionVersion {
    /// `grpc.reflection.v1`.
    V1,
    /// `grpc.reflection.v1alpha`, which older servers have alone.
    V1Alpha,
}

impl ReflectionVersion {
    /// All versions, in the order in which they are attempted.
    pub const ALL: [Self; 2] = [Self::V1, Self::V1Alpha];

    /// Path of its method.
    pub const fn path(self) -> &'static str {
        match self {
            Self::V1 => "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            Self::V1Alpha => "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        }
    }
}

/// Request of reflection; the same in both versions.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReflectionRequest {
    /// Host; empty for any.
    #[prost(string, tag = "1")]
    pub host: String,
    /// Name of a file whose description is wanted.
    #[prost(string, optional, tag = "3")]
    pub file_by_filename: Option<String>,
    /// Full name of a service, method or type whose file is wanted.
    #[prost(string, optional, tag = "4")]
    pub file_containing_symbol: Option<String>,
    /// Whether the names of all services are wanted; its text has no meaning.
    #[prost(string, optional, tag = "7")]
    pub list_services: Option<String>,
}

/// Response of reflection.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReflectionResponse {
    /// Host of the request.
    #[prost(string, tag = "1")]
    pub valid_host: String,
    /// The request.
    #[prost(message, optional, tag = "2")]
    pub original_request: Option<ReflectionRequest>,
    /// Descriptions of files.
    #[prost(message, optional, tag = "4")]
    pub files: Option<FileDescriptions>,
    /// Names of services.
    #[prost(message, optional, tag = "6")]
    pub services: Option<ServiceNames>,
    /// Reason why there is no response.
    #[prost(message, optional, tag = "7")]
    pub error: Option<ReflectionError>,
}

/// Descriptions of files, each as its bytes.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct FileDescriptions {
    /// Bytes of a `FileDescriptorProto` each.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub files: Vec<Vec<u8>>,
}

/// Names of services.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ServiceNames {
    /// Services.
    #[prost(message, repeated, tag = "1")]
    pub services: Vec<ServiceEntry>,
}

/// Name of a service.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ServiceEntry {
    /// Full name.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// Reason why a request of reflection has no response.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ReflectionError {
    /// Code of gRPC.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Text.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// Rounds of questions after which a server that always names further files is given up.
const MAX_ROUNDS: usize = 32;
/// Maximum number of files of a service.
const MAX_FILES: usize = 10_000;

/// Search for the schema of a service. Each round is a call with [requests](Self::requests), whose responses it
/// [takes](Self::take), until there are no requests left.
#[derive(Clone, Debug)]
pub struct Reflection {
    service: String,
    files: Vec<(FileHead, Vec<u8>)>,
    services: Vec<String>,
    failure: Option<String>,
    asked: BTreeSet<String>,
    rounds: usize,
}

impl Reflection {
    /// Search for a service of a full name.
    pub fn new(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            files: Vec::new(),
            services: Vec::new(),
            failure: None,
            asked: BTreeSet::new(),
            rounds: 0,
        }
    }

    /// Messages of the next call; none if nothing is left to be asked.
    pub fn requests(&mut self) -> Vec<Vec<u8>> {
        self.rounds += 1;
        if self.rounds == 1 {
            let all = ReflectionRequest { list_services: Some(String::new()), ..ReflectionRequest::default() };
            let one = ReflectionRequest {
                file_containing_symbol: Some(self.service.clone()),
                ..ReflectionRequest::default()
            };
            return vec![all.encode_to_vec(), one.encode_to_vec()];
        }
        if self.rounds > MAX_ROUNDS || self.files.len() > MAX_FILES || self.failure.is_some() {
            return Vec::new();
        }
        let known: BTreeSet<&str> = self.files.iter().map(|(head, _)| head.name.as_str()).collect();
        let imports = self.files.iter().flat_map(|(head, _)| &head.imports);
        let missing: BTreeSet<String> =
            imports.filter(|name| !known.contains(name.as_str()) && !self.asked.contains(*name)).cloned().collect();
        self.asked.extend(missing.iter().cloned());
        let request = |name| ReflectionRequest { file_by_filename: Some(name), ..ReflectionRequest::default() };
        missing.into_iter().map(|name| request(name).encode_to_vec()).collect()
    }

    /// Takes a message of a response.
    ///
    /// # Errors
    /// One line: it is not one of reflection.
    pub fn take(&mut self, message: &[u8]) -> Result<(), String> {
        let wrong = |error: prost::DecodeError| format!("the response of the server's reflection is invalid: {error}");
        let response = ReflectionResponse::decode(message).map_err(wrong)?;
        for bytes in response.files.map(|files| files.files).unwrap_or_default() {
            let head = FileHead::decode(bytes.as_slice()).map_err(wrong)?;
            if self.files.iter().all(|(known, _)| known.name != head.name) {
                self.files.push((head, bytes));
            }
        }
        let services = response.services.map(|services| services.services).unwrap_or_default();
        self.services.extend(services.into_iter().map(|entry| entry.name));
        if let Some(error) = response.error {
            self.failure.get_or_insert(error.message);
        }
        Ok(())
    }

    /// The schema, once all is asked.
    ///
    /// # Errors
    /// One line: the service is unknown, or its description is incomplete.
    pub fn finish(self) -> Result<GrpcSchema, String> {
        if !self.services.is_empty() && !self.services.contains(&self.service) {
            let services: Vec<String> =
                self.services.into_iter().filter(|name| !name.starts_with("grpc.reflection.")).collect();
            return Err(unknown_service(&self.service, &services));
        }
        if let Some(why) = self.failure {
            return Err(format!("the server's reflection has no '{}': {}", self.service, why.escape_debug()));
        }
        let in_part =
            |why: &str| format!("the server's reflection describes '{}' in part{why}; give --proto", self.service);
        if self.files.is_empty() {
            return Err(in_part(""));
        }
        let set = FileSet { files: self.files.iter().map(|(_, bytes)| bytes.clone()).collect() };
        set.pool().map(GrpcSchema::new).map_err(|why| in_part(&format!(", {why}")))
    }
}

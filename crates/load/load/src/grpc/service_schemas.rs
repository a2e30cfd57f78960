//! Methods that a program calls, by their names: JSON to messages, and back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use weir_grpc::{GrpcMethod, GrpcSchema, MethodName};
use weir_machine::lock::lock;
use weir_net::target::Target;

use super::options::GrpcOptions;
use super::reflection_call::reflect;
use super::rewrite::for_users;
use super::schema_files::schema_of_files;
use crate::options::Options;

/// Methods that a program calls, by their names. The schema of a service is read, or asked of the server, with its first
/// call.
#[derive(Debug)]
pub struct ServiceSchemas {
    options: Options,
    target: Target,
    schemas: Mutex<HashMap<String, GrpcSchema>>,
    methods: Mutex<HashMap<String, Arc<GrpcMethod>>>,
}

impl ServiceSchemas {
    /// Methods of the server of a URL; `files` describe them, or its reflection.
    ///
    /// # Errors
    /// One line: an invalid URL.
    pub fn new(url: &str, files: GrpcOptions) -> Result<Self, String> {
        let options = Options { url: url.to_owned(), grpc: files, ..Options::default() };
        let http = for_users(options.clone()).url;
        let target = Target::parse(&http).map_err(|error| error.to_string())?;
        Ok(Self { options, target, schemas: Mutex::default(), methods: Mutex::default() })
    }

    /// Body of a request of a method, `package.Service/Method`, from JSON.
    ///
    /// # Errors
    /// One line: there is no such method, or the JSON is not a message of it.
    pub fn encode(&self, method: &str, json: &str) -> Result<Vec<u8>, String> {
        self.method(method)?.encode(json, false)
    }

    /// Messages of a response of a method as JSON, one line each, with the fields that have their defaults.
    ///
    /// # Errors
    /// One line: what is wrong with the body.
    pub fn decode_whole(&self, method: &str, body: &[u8], encoding: &[u8]) -> Result<String, String> {
        self.method(method)?.decode_whole(body, encoding)
    }

    /// Reads the files, if there are any, before the first call.
    ///
    /// # Errors
    /// One line: the file and its mistake.
    pub fn read_files(&self) -> Result<(), String> {
        schema_of_files(&self.options.grpc).map(drop)
    }

    /// Messages of a response of a method as JSON, one line each; `encoding` is the value of its `grpc-encoding`.
    ///
    /// # Errors
    /// One line: what is wrong with the body.
    pub fn decode(&self, method: &str, body: &[u8], encoding: &[u8]) -> Result<String, String> {
        self.method(method)?.decode(body, encoding)
    }

    fn method(&self, name: &str) -> Result<Arc<GrpcMethod>, String> {
        if let Some(known) = lock(&self.methods).get(name) {
            return Ok(Arc::clone(known));
        }
        let parsed = MethodName::parse(&format!("/{}", name.trim_start_matches('/')))?;
        let mut schemas = lock(&self.schemas);
        let schema = match schemas.get(&parsed.service) {
            Some(schema) => schema.clone(),
            None => match schema_of_files(&self.options.grpc)? {
                Some(schema) => schema,
                None => reflect(&self.options, &self.target, &parsed.service)?,
            },
        };
        let method = Arc::new(schema.method(&parsed)?);
        schemas.insert(parsed.service, schema);
        lock(&self.methods).insert(name.to_owned(), Arc::clone(&method));
        Ok(method)
    }
}

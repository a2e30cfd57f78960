//! Methods that a program calls, by their names: JSON to messages, and back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use weir_grpc::{GrpcMethod, GrpcSchema, MethodName};
use weir_machine::lock::lock;
use weir_net::target::Target;
use weir_net::tls::PemTexts;
use weir_net::wire::parse_header;

use super::options::GrpcOptions;
use super::reflection_call::reflect;
use super::rewrite::{check_metadata, compression_of, for_users};
use super::schema_files::schema_of_files;
use crate::options::Options;

/// Methods that a program calls, by their names. The schema of a service is read, or asked of the server, with its first
/// call.
#[derive(Debug)]
pub struct ServiceSchemas {
    options: Options,
    target: Target,
    /// Whether messages of calls whose metadata does not say it are compressed.
    compresses: bool,
    /// Certificates for the server's reflection, in place of those of the load.
    certificates: Option<Arc<PemTexts>>,
    schemas: Mutex<HashMap<String, GrpcSchema>>,
    methods: Mutex<HashMap<String, Arc<GrpcMethod>>>,
}

impl ServiceSchemas {
    /// Methods of the server of a URL; `files` describe them, or its reflection.
    ///
    /// # Errors
    /// One line: an invalid URL.
    pub fn new(url: &str, files: GrpcOptions) -> Result<Self, String> {
        Self::of_load(url, files, Vec::new(), &Options::default())
    }

    /// Methods of the server of a URL for users of a load, whose reflection is asked on the load's way: its
    /// certificates, its addresses and its credentials. `headers` are those of all calls, as `Name: value`.
    ///
    /// # Errors
    /// One line: an invalid URL, or a `grpc-encoding` that is not there.
    pub fn of_load(url: &str, files: GrpcOptions, headers: Vec<String>, load: &Options) -> Result<Self, String> {
        let options = Options {
            url: url.to_owned(),
            grpc: files,
            headers,
            auth: load.auth.clone(),
            tls: load.tls.clone(),
            sni: load.sni.clone(),
            connect_to: load.connect_to.clone(),
            unix_socket: load.unix_socket.clone(),
            timeout: load.timeout,
            ..Options::default()
        };
        let http = for_users(options.clone()).url;
        let target = Target::parse(&http).map_err(|error| error.in_scheme("grpc").to_string())?;
        let given = options.headers.iter().filter_map(|line| parse_header(line).ok());
        given.clone().try_for_each(|(name, value)| check_metadata(name, value))?;
        let compresses = compression_of(given)?.unwrap_or(false);
        let (schemas, methods) = (Mutex::default(), Mutex::default());
        Ok(Self { options, target, compresses, certificates: None, schemas, methods })
    }

    /// The same, whose server is asked with these certificates if there are any.
    #[must_use]
    pub fn with_certificates(self, certificates: Option<Arc<PemTexts>>) -> Self {
        Self { certificates, ..self }
    }

    /// Body of a request of a method, `package.Service/Method`, from JSON; its own `metadata` may say that it is
    /// compressed.
    ///
    /// # Errors
    /// One line: there is no such method, the JSON is not a message of it, or metadata that gRPC itself sets.
    pub fn encode(&self, method: &str, json: &str, metadata: &[(String, String)]) -> Result<Vec<u8>, String> {
        let fields = metadata.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        fields.clone().try_for_each(|(name, value)| check_metadata(name, value))?;
        let compresses = compression_of(fields)?.unwrap_or(self.compresses);
        self.method(method)?.encode(json, compresses)
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
                None => reflect((&self.options, self.certificates.as_deref()), &self.target, &parsed.service)?,
            },
        };
        let method = Arc::new(schema.method(&parsed)?);
        schemas.insert(parsed.service, schema);
        lock(&self.methods).insert(name.to_owned(), Arc::clone(&method));
        Ok(method)
    }
}

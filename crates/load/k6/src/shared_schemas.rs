//! Descriptions of services of gRPC, once for all users.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use weir_load::Options;
use weir_load::grpc::{GrpcOptions, ServiceSchemas};
use weir_machine::lock::lock;
use weir_net::tls::PemTexts;

/// Where a description is from: files, a descriptor set, or the server of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaSource {
    pub(crate) url: String,
    pub(crate) files: Vec<String>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) set: Option<PathBuf>,
    /// Header lines of questions to the server.
    pub(crate) headers: Vec<String>,
    /// Certificates of its client, in place of those of the load.
    pub(crate) tls: Option<Arc<PemTexts>>,
    /// Whether any certificate of the server is accepted.
    pub(crate) is_insecure: bool,
}

/// Descriptions of services by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SharedSchemas(Mutex<Vec<(SchemaSource, Arc<ServiceSchemas>)>>);

impl SharedSchemas {
    /// Number of the descriptions from a source, whose files are read once; a server is asked on the way of the load.
    ///
    /// # Errors
    /// One line: the file and its mistake, or an invalid URL.
    pub(crate) fn add(&self, source: SchemaSource, load: &Options) -> Result<usize, String> {
        let mut all = lock(&self.0);
        if let Some(known) = all.iter().position(|(known, _)| *known == source) {
            return Ok(known);
        }
        let files = source.files.iter().map(PathBuf::from).collect();
        let options = GrpcOptions::of_files(files, source.folders.clone(), source.set.clone());
        // Files describe services of any server.
        let url = if source.url.is_empty() { "grpc://localhost" } else { &source.url };
        let mut load = Options { tls: load.tls.clone(), ..load.single_iteration(Vec::new()) };
        load.tls.insecure |= source.is_insecure;
        let schemas = ServiceSchemas::of_load(url, options, source.headers.clone(), &load)?;
        let schemas = schemas.with_certificates(source.tls.clone());
        schemas.read_files().map_err(|why| why.trim_start_matches("--proto: ").to_owned())?;
        all.push((source, Arc::new(schemas)));
        Ok(all.len() - 1)
    }

    /// Descriptions of a number.
    ///
    /// # Errors
    /// One line: there are none.
    pub(crate) fn get(&self, number: usize) -> Result<Arc<ServiceSchemas>, String> {
        let found = lock(&self.0).get(number).map(|(_, schemas)| Arc::clone(schemas));
        found.ok_or_else(|| "no description of services; call client.load() first".to_owned())
    }
}

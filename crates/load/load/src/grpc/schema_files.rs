//! The schema of a service from files.

use std::path::{Path, PathBuf};

use weir_grpc::GrpcSchema;
use weir_machine::input_file;

use super::options::GrpcOptions;

/// Schema of the files that options name; `None` if they name none.
///
/// # Errors
/// One line: the file and its mistake.
pub(super) fn schema_of_files(options: &GrpcOptions) -> Result<Option<GrpcSchema>, String> {
    if let Some(path) = &options.protoset {
        if !options.protos.is_empty() {
            return Err("--proto and --protoset do not go together; a descriptor set has the files in it".to_owned());
        }
        let bytes = read(path)?;
        let schema = GrpcSchema::from_descriptor_set(&bytes);
        return schema.map(Some).map_err(|why| format!("--protoset {}: {why}", path.display()));
    }
    if options.protos.is_empty() {
        return match options.proto_paths.first() {
            Some(_) => Err("--proto-path is for the files of --proto; name one with --proto FILE".to_owned()),
            None => Ok(None),
        };
    }
    let here = [PathBuf::from(".")];
    let folders = if options.proto_paths.is_empty() { here.as_slice() } else { options.proto_paths.as_slice() };
    let names: Vec<String> = options.protos.iter().map(|path| name_within(path, folders)).collect();
    let mut read_source = |name: &str| {
        let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        found.map(|path| read(&path).and_then(|bytes| text_of(&path, bytes))).transpose()
    };
    let schema = GrpcSchema::compile(&names, &mut read_source);
    schema.map(Some).map_err(|why| format!("--proto: {why}{}", remedy(&why)))
}

/// Name by which a file is imported: its path within one of the folders.
fn name_within(path: &Path, folders: &[PathBuf]) -> String {
    let within = folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
    within.unwrap_or(path).to_string_lossy().into_owned()
}

fn remedy(why: &str) -> &'static str {
    let is_missing = why.starts_with("no file") || why.contains("not found");
    if is_missing { "; give the folder of imports with --proto-path" } else { "" }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    input_file::read(path).map_err(|error| format!("cannot read '{}': {error}", path.display()))
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("'{}' is not UTF-8", path.display()))
}

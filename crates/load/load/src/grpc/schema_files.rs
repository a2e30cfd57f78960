//! The schema of a service from files.

use std::path::{Component, Path, PathBuf};

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
            return Err("--proto and --protoset cannot be combined; a descriptor set has the files in it".to_owned());
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
    let mut folders = options.proto_paths.clone();
    if folders.is_empty() {
        folders.push(".".into());
    }
    let names: Vec<String> = options.protos.iter().map(|path| place(path, &mut folders)).collect();
    let mut read_source = |name: &str| {
        let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        found.map(|path| read(&path).and_then(|bytes| text_of(&path, bytes))).transpose()
    };
    let schema = GrpcSchema::compile(&names, &mut read_source);
    schema.map(Some).map_err(|why| format!("--proto: {why}{}", remedy(&why)))
}

/// Name by which a file is imported: its path within one of the folders. A file that is in none of them has its own
/// folder, which is added.
fn place(path: &Path, folders: &mut Vec<PathBuf>) -> String {
    let name = folders.iter().find_map(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
    let is_name = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let is_found = is_name && folders.iter().any(|folder| folder.join(name).is_file());
    if !is_found
        && path.is_file()
        && let (Some(folder), Some(file)) = (path.parent(), path.file_name())
    {
        folders.push(folder.to_owned());
        return file.to_string_lossy().into_owned();
    }
    let parts = name.components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().to_string_lossy().into_owned()
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

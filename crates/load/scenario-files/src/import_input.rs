//! Files that are imported, with their texts.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use weir_import::{Import, ImportFile, ImportKind, ImportSettings, NamedFileReader, import_with_files, to_script};
use weir_load::steps::path_within;
use weir_machine::input_file;

/// Name of stdin in messages.
const STDIN: &str = "stdin";

/// Folders within one another that are searched.
const MAX_DEPTH: usize = 16;

/// Files with their texts.
#[derive(Debug)]
pub struct ImportInput {
    files: Vec<InputFile>,
    kind: Option<ImportKind>,
}

#[derive(Debug)]
struct InputFile {
    name: String,
    folder: PathBuf,
    text: String,
}

impl ImportInput {
    /// Reads files; a folder is that of a collection of Bruno.
    ///
    /// # Errors
    /// One line, if a file cannot be read or is not text.
    pub fn read(paths: &[PathBuf], kind: Option<ImportKind>) -> Result<Self, String> {
        let mut files = Vec::new();
        for path in paths {
            if path.as_os_str() == "-" {
                files.push(InputFile { name: STDIN.to_owned(), folder: PathBuf::new(), text: stdin()? });
            } else if path.is_dir() {
                let mut found = Vec::new();
                collect(path, &mut found, 0)?;
                if found.is_empty() {
                    let path = path.display();
                    return Err(format!("{path}: no .bru file in the folder; name the files to import"));
                }
                for path in found {
                    files.push(InputFile::read(&path)?);
                }
            } else {
                files.push(InputFile::read(path)?);
            }
        }
        Ok(Self { files, kind })
    }

    /// The file of a text that has been read already.
    pub fn of_text(path: &Path, text: String) -> Self {
        let file = InputFile { name: path.display().to_string(), folder: folder(path), text };
        Self { files: vec![file], kind: None }
    }

    /// A recording, by a name for messages.
    pub fn of_recording(name: &str, text: String) -> Self {
        let file = InputFile { name: name.to_owned(), folder: PathBuf::new(), text };
        Self { files: vec![file], kind: Some(ImportKind::Har) }
    }

    /// Imports the files, whose texts are gone after it.
    ///
    /// # Errors
    /// One line with file, line and what is expected there.
    pub fn import(&mut self, settings: &ImportSettings) -> Result<Import, String> {
        let kind = self.kind;
        let folders: Vec<(String, PathBuf)> =
            self.files.iter().map(|file| (file.name.clone(), file.folder.clone())).collect();
        let reader = NamedFileReader::new(move |file, name| {
            let folder = folders.iter().find(|(own, _)| own == file).map(|(_, folder)| folder.as_path());
            // Its content becomes text that is sent to the host that the file names.
            let path = path_within(folder.unwrap_or(Path::new("")), Path::new(name)).ok()?;
            // Neither a pipe, whose end does not come, nor what does not fit.
            let is_small =
                fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() <= NamedFileReader::MAX_BYTES as u64);
            is_small.then(|| input_file::read(path).ok()).flatten()
        });
        let files = self.files.iter_mut().map(|file| {
            let text = std::mem::take(&mut file.text).into();
            ImportFile { name: &file.name, text, kind }
        });
        import_with_files(files, settings, reader).map_err(|error| error.to_string())
    }

    /// The files as a script in JavaScript: a collection of Postman with its environments.
    ///
    /// # Errors
    /// One line with file, line and what is expected there.
    pub fn script(&self) -> Result<String, String> {
        let files: Vec<ImportFile<'_>> = self
            .files
            .iter()
            .map(|file| ImportFile { name: &file.name, text: file.text.as_str().into(), kind: None })
            .collect();
        to_script(&files).map_err(|error| error.to_string())
    }

    /// Path of a file that an imported file names.
    pub fn path_of(&self, file: &str, name: &str) -> PathBuf {
        let folder = self.files.iter().find(|own| own.name == file).map(|own| own.folder.as_path());
        folder.unwrap_or(Path::new("")).join(name)
    }

    /// Names of the files.
    pub fn names(&self) -> Vec<&str> {
        self.files.iter().map(|file| file.name.as_str()).collect()
    }
}

impl InputFile {
    fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let bytes = input_file::read(path).map_err(|error| format!("cannot read '{name}': {error}"))?;
        let text = text(bytes).ok_or_else(|| format!("'{name}' is neither UTF-8 nor UTF-16; convert it to UTF-8"))?;
        Ok(Self { name, folder: folder(path), text })
    }
}

fn folder(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Text in UTF-8, or in UTF-16 with its mark, as Windows' shells write it.
fn text(bytes: Vec<u8>) -> Option<String> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| -> Option<String> {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    }
}

fn stdin() -> Result<String, String> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("cannot read stdin: {error}"))?;
    text(bytes).ok_or_else(|| "stdin is neither UTF-8 nor UTF-16".to_owned())
}

/// Finds `.bru` files below a folder: environments first, then requests in the order that they give themselves.
fn collect(folder: &Path, found: &mut Vec<PathBuf>, depth: usize) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read '{}': {error}", folder.display()))?;
    let mut entries: Vec<(u64, bool, PathBuf)> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "bru"))
        .map(|path| {
            let is_environments = path.file_name().is_some_and(|name| name == "environments");
            (if is_environments { 0 } else { order(&path) }, path.is_dir(), path)
        })
        .collect();
    entries.sort();
    for (_, is_folder, path) in entries {
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.') || name == "node_modules");
        if is_folder && depth < MAX_DEPTH && !is_hidden {
            collect(&path, found, depth + 1)?;
        } else if !is_folder {
            found.push(path);
        }
    }
    Ok(())
}

/// `seq` of a request, or of the folder's own file.
fn order(path: &Path) -> u64 {
    let file = if path.is_dir() { path.join("folder.bru") } else { path.to_path_buf() };
    let text = fs::read_to_string(file).unwrap_or_default();
    let seq = text.lines().find_map(|line| line.trim().strip_prefix("seq:"));
    seq.and_then(|seq| seq.trim().parse().ok()).unwrap_or(u64::MAX)
}

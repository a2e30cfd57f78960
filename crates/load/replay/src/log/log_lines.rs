//! Lines of log files: plain, gzip, and stdin.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use weir_machine::input_file;

/// First bytes of compressed files that are not unpacked, and the programs that do it.
const COMPRESSED: [(&[u8], &str); 4] =
    [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")];
/// Size of the buffer of a file.
const BUFFER_BYTES: usize = 256 * 1024;
/// Longest line that is read.
const MAX_LINE_BYTES: usize = 1 << 20;
/// First bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Lines of files, one file after the other.
pub struct LogLines {
    left: VecDeque<PathBuf>,
    current: Option<OpenLog>,
    line: Vec<u8>,
}

/// File that is being read.
struct OpenLog {
    name: String,
    reader: Box<dyn BufRead + Send>,
    line_number: u64,
}

/// A line, or the mark of one that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// Text without its end.
    Text(String),
    /// Longer than a mebibyte.
    TooLong,
}

impl LogLines {
    /// Lines of these files; `-` is stdin.
    pub fn new(files: &[PathBuf]) -> Self {
        Self { left: files.iter().cloned().collect(), current: None, line: Vec::new() }
    }

    /// Next line that is neither empty nor a comment, with its place `FILE:LINE`; `None` at the end.
    ///
    /// # Errors
    /// One line, if a file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<LogLine>, String> {
        loop {
            let Some(open) = &mut self.current else {
                let Some(path) = self.left.pop_front() else { return Ok(None) };
                self.current = Some(OpenLog::open(&path)?);
                continue;
            };
            self.line.clear();
            let is_whole = read_line(&mut open.reader, &mut self.line)
                .map_err(|error| format!("cannot read {}:{}: {error}", open.name, open.line_number + 1))?;
            let Some(is_whole) = is_whole else {
                self.current = None;
                continue;
            };
            open.line_number += 1;
            if !is_whole {
                return Ok(Some(LogLine::TooLong));
            }
            let text = self.line.trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                return Ok(Some(LogLine::Text(String::from_utf8_lossy(text).into_owned())));
            }
        }
    }

    /// Place of the last line: `FILE:LINE`.
    pub fn place(&self) -> String {
        self.current.as_ref().map_or_else(String::new, |open| format!("{}:{}", open.name, open.line_number))
    }
}

impl OpenLog {
    fn open(path: &Path) -> Result<Self, String> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let failed = |error: io::Error| format!("cannot read {name}: {error}");
        let file = match is_stdin {
            true => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
            false => input_file::open(path).map_err(failed)?,
        };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let start = reader.fill_buf().map_err(failed)?;
        if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
            let command = if is_stdin { format!("{program} -dc") } else { format!("{program} -dc {name}") };
            return Err(format!("{name}: compressed by {program}; unpack it: {command} | weir ... -"));
        }
        let reader: Box<dyn BufRead + Send> = match start.starts_with(&GZIP_MAGIC) {
            true => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(reader))),
            false => Box::new(reader),
        };
        Ok(Self { name, reader, line_number: 0 })
    }
}

/// Reads a line; `Some(false)` if it is too long, and `None` at the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    let read = reader.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', line)?;
    if read == 0 {
        return Ok(None);
    }
    if read <= MAX_LINE_BYTES || line.ends_with(b"\n") {
        return Ok(Some(true));
    }
    reader.skip_until(b'\n')?;
    Ok(Some(false))
}

impl std::fmt::Debug for LogLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogLines").field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_line_that_is_too_long_is_skipped_as_a_whole() {
        let text = [b"a\n".to_vec(), vec![b'x'; 3 * MAX_LINE_BYTES], b"\nb".to_vec()].concat();
        let (mut reader, mut line) = (Cursor::new(text), Vec::new());
        let mut next = || {
            line.clear();
            read_line(&mut reader, &mut line).expect("readable").map(|is_whole| (is_whole, line.len()))
        };
        assert_eq!(next(), Some((true, 2)));
        assert_eq!(next().map(|(is_whole, _)| is_whole), Some(false));
        assert_eq!((next(), next()), (Some((true, 1)), None));
    }
}

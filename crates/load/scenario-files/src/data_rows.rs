//! Rows of data as scenarios need them: with the names of the columns in the first line, and commas or tabs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::{ReaderBuilder, WriterBuilder};

use weir_import::ImportedData;

/// Content of a file of data with a line of names; `None` if the file is so already.
///
/// # Errors
/// One line, if the file is not what its delimiter says.
pub(super) fn with_header(data: &ImportedData, content: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let delimiter = delimiter(data);
    if !data.lacks_header && delimiter == b',' {
        return Ok(None);
    }
    let problem = |error: csv::Error| format!("{}: {error}", data.file);
    let mut reader = ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(content);
    let mut writer = WriterBuilder::new().flexible(true).from_writer(Vec::new());
    if data.lacks_header {
        writer.write_record(&data.columns).map_err(problem)?;
    }
    for record in reader.byte_records() {
        let record = record.map_err(problem)?;
        // More fields than names are dropped, as JMeter does.
        let width = if data.lacks_header { data.columns.len() } else { record.len() };
        let fields = record.iter().chain(std::iter::repeat(&b""[..])).take(width);
        writer.write_record(fields).map_err(problem)?;
    }
    writer.into_inner().map(Some).map_err(|error| format!("{}: {error}", data.file))
}

/// Names of the columns in the first line of a file; `None` if it has none that can be read.
pub(super) fn columns(path: &Path, data: &ImportedData) -> Option<Vec<String>> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|of| of.is_file()))?;
    let start = file.take(MAX_LINE_BYTES);
    let mut reader =
        ReaderBuilder::new().delimiter(delimiter(data)).has_headers(false).flexible(true).from_reader(start);
    let first = reader.records().next()?.ok()?;
    Some(first.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_owned()).collect())
}

/// Longest first line.
const MAX_LINE_BYTES: u64 = 1 << 20;

fn delimiter(data: &ImportedData) -> u8 {
    match data.delimiter.as_str() {
        "" | "," => b',',
        "\\t" | "\t" => b'\t',
        other => other.bytes().next().unwrap_or(b','),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_added_and_delimiters_become_commas() {
        let data = ImportedData {
            file: "users.csv".into(),
            columns: vec!["user".into(), "password".into()],
            lacks_header: true,
            delimiter: ";".into(),
            ..ImportedData::default()
        };
        let made = with_header(&data, b"ada;a,b;x\ngrace\n").unwrap().unwrap();
        assert_eq!(String::from_utf8(made).unwrap(), "user,password\nada,\"a,b\"\ngrace,\n");
        let as_is = ImportedData { lacks_header: false, delimiter: ",".into(), ..data };
        assert_eq!(with_header(&as_is, b"user\nada\n"), Ok(None));
    }
}

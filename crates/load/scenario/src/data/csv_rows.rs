//! Rows of a CSV file.

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::data_rows::{CellKind, DataRows, check_column, too_large};

/// Parses text of separated columns. Quotes, line breaks in fields and empty lines are as in RFC 4180; spaces around
/// the names of columns are dropped, all others are data.
pub(super) fn parse(text: &str, separator: u8) -> Result<DataRows, (u64, String)> {
    let mut reader = ReaderBuilder::new().delimiter(separator).from_reader(text.as_bytes());
    let mut columns = Vec::new();
    for name in reader.headers().map_err(|error| reason(&error))? {
        check_column(name.trim(), &columns).map_err(|reason| (1, reason))?;
        columns.push(name.trim().to_owned());
    }
    let mut rows = DataRows::new(columns, CellKind::Text);
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| reason(&error))? {
        for cell in &record {
            rows.push(cell).map_err(|_| too_large(record.position().map_or(1, csv::Position::line)))?;
        }
    }
    Ok(rows)
}

/// Line and reason of an error of the parser.
fn reason(error: &csv::Error) -> (u64, String) {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let fields = if *len == 1 { "1 field".to_owned() } else { format!("{len} fields") };
            let columns = if *expected_len == 1 { "1 column".to_owned() } else { format!("{expected_len} columns") };
            (line, format!("{fields} for {columns}; give each column a value, or quote values with separators"))
        }
        _ => (line, error.to_string()),
    }
}

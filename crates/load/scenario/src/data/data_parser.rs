//! Files of data to rows.

use super::data_error::{DataError, line_at};
use super::data_format::DataFormat;
use super::data_rows::DataRows;
use super::{csv_rows, json_rows};

impl DataRows {
    /// Parses the content of a file with this name.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(name: &str, content: &[u8]) -> Result<Self, DataError> {
        let error = |line, reason| DataError { name: name.to_owned(), line, reason };
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let text = std::str::from_utf8(content).map_err(|invalid| {
            error(line_at(content, invalid.valid_up_to()), "invalid UTF-8; save the file as UTF-8".to_owned())
        })?;
        if text.trim().is_empty() {
            return Err(error(1, "the file is empty; write the names of the columns, and rows below them".to_owned()));
        }
        let rows = match DataFormat::of(name, text) {
            DataFormat::Separated(separator) => csv_rows::parse(text, separator),
            DataFormat::JsonArray => json_rows::parse_array(text),
            DataFormat::JsonLines => json_rows::parse_lines(text),
        };
        let rows = rows.map_err(|(line, reason)| error(line, reason))?;
        if rows.is_empty() {
            return Err(error(1, "no rows; write at least one row of data".to_owned()));
        }
        Ok(rows)
    }
}

//! Rows of CSV as JSON.

use serde_json::{Map, Value};

/// Which rows of a file are read, and as what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CsvSettings {
    pub(crate) delimiter: u8,
    /// First row, from 0, before which rows are left out.
    pub(crate) from: usize,
    /// Last row.
    pub(crate) to: Option<usize>,
    /// Whether the first row has the names of the others' fields.
    pub(crate) as_objects: bool,
}

/// Rows of a file as JSON, each by itself: arrays of texts, or objects.
///
/// # Errors
/// One line with the mistake of the file.
pub(crate) fn csv_rows(bytes: &[u8], settings: &CsvSettings) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(settings.delimiter).from_reader(bytes);
    let mut names: Option<Vec<String>> = None;
    let mut rows = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        if settings.as_objects && names.is_none() {
            names = Some(record.iter().map(str::to_owned).collect());
            continue;
        }
        if settings.to.is_some_and(|last| index > last) {
            break;
        }
        if index < settings.from {
            continue;
        }
        let row = match &names {
            Some(names) => {
                let fields = names.iter().zip(&record).map(|(name, value)| (name.clone(), Value::from(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            None => record.iter().map(Value::from).collect(),
        };
        rows.push(row.to_string());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_between_two_lines() {
        let text = b"a,b\n1,\"x\ny\"\n2,z\n3,w\n";
        let settings = CsvSettings { delimiter: b',', from: 0, to: None, as_objects: true };
        let rows = csv_rows(text, &settings).expect("valid");
        assert_eq!(rows, [r#"{"a":"1","b":"x\ny"}"#, r#"{"a":"2","b":"z"}"#, r#"{"a":"3","b":"w"}"#]);
        let some = CsvSettings { from: 1, to: Some(2), as_objects: false, ..settings.clone() };
        assert_eq!(csv_rows(text, &some).expect("valid"), [r#"["1","x\ny"]"#, r#"["2","z"]"#]);
        assert!(csv_rows(b"a,b\n1\n", &settings).is_err_and(|why| why.contains("line 2") || why.contains("line: 2")));
    }
}

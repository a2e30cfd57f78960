//! Data of a scenario as given, not yet parsed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use weir_machine::input_file;
use weir_scenario::data::RowOrder;

use crate::base64_bytes;

/// File of data with its content, so that agents on other machines have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource {
    /// Name of the file; its extension decides the format: csv, tsv, json, jsonl.
    pub name: String,
    /// Content of the file.
    #[serde(with = "base64_bytes")]
    pub content: Vec<u8>,
    /// Order in which iterations take the rows.
    pub order: RowOrder,
}

impl DataSource {
    /// Reads a file.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub fn read(path: &Path, order: RowOrder) -> Result<Self, String> {
        let name = path.display().to_string();
        let content = input_file::read(path).map_err(|error| format!("cannot read the data '{name}': {error}"))?;
        Ok(Self { name, content, order })
    }
}

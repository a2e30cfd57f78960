//! Rows of data.

use crate::value::Value;

/// Rows of data with named columns. All cells are one text with the ends of each, since a load may have millions of
/// rows: a cell takes 4 bytes more than its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataRows {
    columns: Vec<String>,
    cells: String,
    /// End of each cell in `cells`, row by row.
    ends: Vec<u32>,
    kind: CellKind,
}

/// Type of a cell's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Text.
    #[default]
    Text,
    /// Text of a JSON value.
    Json,
}

/// Reason why a cell has no place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellsFull;

impl DataRows {
    /// Rows with these columns, and none yet.
    pub(super) fn new(columns: Vec<String>, kind: CellKind) -> Self {
        Self { columns, cells: String::new(), ends: Vec::new(), kind }
    }

    /// Adds the next cell.
    pub(super) fn push(&mut self, cell: &str) -> Result<(), CellsFull> {
        self.cells.push_str(cell);
        self.ends.push(u32::try_from(self.cells.len()).map_err(|_| CellsFull)?);
        Ok(())
    }

    /// Names of the columns, which become variables.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len() / self.columns.len().max(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of a row, in the order of the columns; none beyond the last row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Value> + '_ {
        let width = self.columns.len();
        let first = row.saturating_mul(width).min(self.ends.len());
        (first..(first + width).min(self.ends.len())).map(|cell| self.value(cell))
    }

    fn value(&self, cell: usize) -> Value {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        let start = cell.checked_sub(1).map_or(0, end);
        let text = self.cells.get(start..end(cell)).unwrap_or_default();
        match self.kind {
            CellKind::Text => Value::text(text),
            CellKind::Json => Value::of_json(text.as_bytes()),
        }
    }
}

/// Text for a file that is too large.
pub(super) fn too_large(line: u64) -> (u64, String) {
    (line, "the file has more than 4 GiB of data; split it".to_owned())
}

/// Checks the name of a column.
pub(super) fn check_column(name: &str, before: &[String]) -> Result<(), String> {
    if before.iter().any(|other| other == name) {
        return Err(format!("two columns have the name '{name}'; rename one"));
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "invalid name of a column '{}': a variable has letters, digits, '_' and '-'; write e.g. user_id",
            name.escape_debug()
        ));
    }
    Ok(())
}

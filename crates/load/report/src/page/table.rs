//! Rows and columns, to be read digit by digit.

use super::{Tone, ValueUnit};

/// A table; all rows have as many cells as there are columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageTable {
    /// Subject of the table.
    pub title: String,
    /// Headings. The first column names its row.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<TableCell>>,
    /// Whether it is long and waits to be opened.
    pub folded: bool,
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// Words, to the left.
    Text(String),
    /// A number, to the right.
    Number(f64, ValueUnit),
    /// Words that say how good something is.
    Toned(Tone, String),
    /// Nothing that could stand there.
    Empty,
}

impl PageTable {
    /// A table with these columns and no rows yet.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Self { title: title.to_owned(), columns, ..Self::default() }
    }

    /// With one more row.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = TableCell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    /// Whether a column holds numbers, and stands to the right.
    pub(super) fn is_number(&self, column: usize) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(TableCell::Number(..))))
    }
}

impl TableCell {
    /// Words.
    pub fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    /// Words on one line: a figure with its sign and unit.
    pub fn unbroken(words: &str) -> Self {
        Self::Text(words.replace(' ', "\u{a0}"))
    }

    /// A whole number.
    pub fn count(n: u64) -> Self {
        Self::Number(n as f64, ValueUnit::Count)
    }

    /// A time in milliseconds; empty if it was not measured.
    pub fn ms(value: impl Into<Option<f64>>) -> Self {
        value.into().map_or(Self::Empty, |ms| Self::Number(ms, ValueUnit::Milliseconds))
    }
}

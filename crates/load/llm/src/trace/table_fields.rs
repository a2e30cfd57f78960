//! Fields of the rows of a table.

/// Fields of a row, without their quotes.
pub(super) fn fields(row: &str) -> impl Iterator<Item = &str> {
    row.trim_start_matches('\u{feff}').split(',').map(|field| field.trim().trim_matches('"').trim())
}

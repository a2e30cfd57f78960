//! Formats of files of data.

/// Format of a file of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    /// Columns separated by this byte; the first line has their names.
    Separated(u8),
    /// JSON array of objects.
    JsonArray,
    /// One JSON object on each line.
    JsonLines,
}

impl DataFormat {
    /// Format of a file: by its extension (csv, tsv, json, jsonl or ndjson), otherwise by its first character.
    pub fn of(name: &str, text: &str) -> Self {
        let extension = name.rsplit(['/', '\\']).next().and_then(|file| file.rsplit_once('.'));
        match extension.map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
            Some("csv") => Self::Separated(b','),
            Some("tsv") => Self::Separated(b'\t'),
            Some("json") => Self::JsonArray,
            Some("jsonl" | "ndjson") => Self::JsonLines,
            _ => match text.trim_start().as_bytes().first() {
                Some(b'[') => Self::JsonArray,
                Some(b'{') => Self::JsonLines,
                _ => Self::Separated(b','),
            },
        }
    }
}

//! Reader of a whole file.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::images::{ImageFiles, ImageReader};
use super::record::RecordReader;
use super::{
    ChatRole, ContentPart, Dataset, DatasetError, DatasetKind, DatasetMessage, DatasetRecord, PartKind, RecordContent,
    TextSpan,
};
use crate::json_text::{is_list, is_object};

/// Byte order mark at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the content of a file.
pub(super) fn dataset(name: &str, content: Vec<u8>, images: &mut ImageReader<'_>) -> Result<Dataset, DatasetError> {
    let error = |line, reason: String| DatasetError { name: name.to_owned(), line, reason };
    let utf8 = std::str::from_utf8(&content).map_err(|e| {
        error(line_at(&content, e.valid_up_to()), "bytes that are not UTF-8; save the file as UTF-8".to_owned())
    })?;
    let start = if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let places = places(utf8, start).map_err(|(line, reason)| error(line, reason))?;
    let is_text = matches!(places, Places::Lines(_));
    if let Places::Lines(lines) = &places {
        let first: Vec<&str> = lines.iter().take(4).filter_map(|span| utf8.get(span.start..span.end)).collect();
        if is_table(name, &first) {
            return Err(error(1, table_refusal()));
        }
    }
    let (Places::Lines(places) | Places::Records(places)) = places;
    let mut set = Dataset {
        name: name.to_owned(),
        kind: DatasetKind::Lines,
        text: content,
        records: Vec::with_capacity(places.len()),
        messages: Vec::new(),
        parts: Vec::new(),
        batch_url: None,
        skipped: 0,
        unsent: BTreeSet::new(),
    };
    let (mut files, mut first) = (ImageFiles::default(), None);
    let (mut line, mut counted) = (1, 0);
    for span in places {
        // Lines are counted on, and not for each record from the start.
        line += newlines(&set.text[counted..span.start]);
        counted = span.start;
        if is_text {
            set.push_line(line, span);
            continue;
        }
        let (kind, first_line) = match first {
            Some(first) => first,
            None => {
                let kind =
                    DatasetKind::of(set.text(span)).ok_or_else(|| error(line, unknown_record(set.text(span))))?;
                set.kind = kind;
                *first.insert((kind, line))
            }
        };
        if DatasetKind::of(set.text(span)) != Some(kind) {
            return Err(error(line, format!("expected {}, as in line {first_line}", kind.example())));
        }
        RecordReader { set: &mut set, files: &mut files, images }.read(line, span).map_err(|why| error(line, why))?;
    }
    if set.records.is_empty() {
        let why = match set.skipped {
            0 => "no prompts; write one a line".to_owned(),
            n => format!("no prompts: {n} conversations without a message of a user"),
        };
        return Err(error(1, why));
    }
    Ok(set)
}

/// Places of the records of a file.
enum Places {
    /// Lines of text.
    Lines(Vec<TextSpan>),
    /// JSON values.
    Records(Vec<TextSpan>),
}

fn places(text: &str, start: usize) -> Result<Places, (u64, String)> {
    let body = text[start..].trim();
    if is_list(body.as_bytes()) {
        match serde_json::from_str::<Vec<&RawValue>>(body) {
            // An element is a part of the text, so that its place is the distance between both.
            Ok(elements) => return Ok(Places::Records(elements.iter().map(|e| span_of(text, e.get())).collect())),
            // Objects within brackets are meant as JSON; a line of text may begin with a bracket, too.
            Err(why) if body[1..].trim_start().starts_with('{') => {
                let before = line_at(text.as_bytes(), span_of(text, body).start) - 1;
                return Err((before + why.line() as u64, not_json(&why)));
            }
            Err(_) => {}
        }
    }
    let lines = text[start..].split('\n').map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or_default();
    let spans = lines.clone().map(|line| span_of(text, line)).collect();
    if !is_object(first.as_bytes()) && serde_json::from_str::<String>(first).is_err() {
        return Ok(Places::Lines(spans));
    }
    for line in lines {
        if let Err(why) = serde_json::from_str::<&RawValue>(line) {
            return Err((line_at(text.as_bytes(), span_of(text, line).start), not_json(&why)));
        }
    }
    Ok(Places::Records(spans))
}

fn span_of(text: &str, part: &str) -> TextSpan {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    TextSpan { start, end: start + part.len() }
}

/// Message of a parser without its line, which is that of a part.
fn not_json(why: &serde_json::Error) -> String {
    let why = why.to_string();
    format!("not JSON: {}", why.split(" at line ").next().unwrap_or(&why))
}

fn newlines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn line_at(text: &[u8], offset: usize) -> u64 {
    1 + newlines(&text[..offset])
}

/// Whether lines are those of a table with a heading: each would be sent as a prompt.
fn is_table(name: &str, lines: &[&str]) -> bool {
    let has_ending = |ending: &str| name.len() > ending.len() && name.to_ascii_lowercase().ends_with(ending);
    if has_ending(".csv") || has_ending(".tsv") {
        return true;
    }
    let is_number = |field: &&str| field.trim().parse::<f64>().is_ok();
    let columns = |line: &str, by: char| line.split(by).count();
    [',', '\t', ';'].into_iter().any(|by| {
        let Some((first, rest)) = lines.split_first() else { return false };
        let is_heading = columns(first, by) > 2 && !first.split(by).any(|field| is_number(&field));
        let is_row = |line: &&str| columns(line, by) == columns(first, by) && line.split(by).any(|f| is_number(&f));
        is_heading && !rest.is_empty() && rest.iter().all(is_row)
    })
}

fn table_refusal() -> String {
    format!(
        "this looks like a table (CSV), whose columns are not read; give a trace as --trace FILE, or write prompts as \
         lines of text or of JSON, e.g. {}",
        DatasetKind::Prompts.example()
    )
}

fn unknown_record(record: &[u8]) -> String {
    let names: Vec<String> =
        crate::json_text::members(record).iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    let found = if names.is_empty() { String::new() } else { format!("; found {}", names.join(", ")) };
    let remedy = match names.iter().any(|name| matches!(name.as_str(), "input_length" | "input_len" | "hash_ids")) {
        true => "; a trace is replayed by --trace FILE",
        false => "",
    };
    format!(
        "expected a prompt, messages, turns, conversations or body, e.g. {}{found}{remedy}",
        DatasetKind::Prompts.example()
    )
}

impl Dataset {
    /// Adds a line of text as a prompt.
    fn push_line(&mut self, line: u64, span: TextSpan) {
        let parts = self.parts.len()..self.parts.len() + 1;
        self.parts.push(ContentPart { kind: PartKind::PlainText, span });
        let messages = self.messages.len()..self.messages.len() + 1;
        self.messages.push(DatasetMessage { role: ChatRole::User, parts, raw: None, think: None });
        self.records.push(DatasetRecord { line, content: RecordContent::Messages(messages), max_tokens: None });
    }
}

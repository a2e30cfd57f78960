//! Multipart bodies.

use weir_hurl::{MultipartField, MultipartValue};

use super::encoding::PieceEncoding;
use super::files::StepFiles;
use super::piece::{PieceCompiler, PieceList};

/// Content types by the extension of a file, as curl guesses them.
const CONTENT_TYPES: [(&str, &str); 10] = [
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("xml", "application/xml"),
];
const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

/// Part of a multipart body, with the bytes of its file.
struct MultipartPart<'f> {
    field: &'f MultipartField,
    /// Name and bytes of the file.
    file: Option<(String, Vec<u8>)>,
}

/// Appends a multipart body; returns its content type.
pub(super) fn push_multipart(
    fields: &[MultipartField],
    files: &mut StepFiles<'_>,
    list: &mut PieceList,
    compiler: &mut PieceCompiler<'_>,
) -> String {
    let mut parts = Vec::new();
    for field in fields {
        let file = match &field.value {
            MultipartValue::Text(_) => None,
            MultipartValue::File { name, .. } => files.read(name, compiler),
        };
        parts.push(MultipartPart { field, file });
    }
    let boundary = boundary(&parts);
    for part in &parts {
        list.push_fixed(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"").as_bytes());
        list.push(&part.field.name, PieceEncoding::QuotedName, compiler);
        list.push_fixed(b"\"");
        match (&part.field.value, &part.file) {
            (MultipartValue::Text(text), _) => {
                list.push_fixed(b"\r\n\r\n");
                list.push(text, PieceEncoding::Verbatim, compiler);
            }
            (MultipartValue::File { content_type, .. }, Some((name, bytes))) => {
                let mut quoted = name.clone().into_bytes();
                // Escapes characters and rejects none.
                let _ = PieceEncoding::QuotedName.encode_tail(&mut quoted, 0);
                list.push_fixed(b"; filename=\"");
                list.push_fixed(&quoted);
                list.push_fixed(b"\"\r\nContent-Type: ");
                match content_type {
                    Some(content_type) => list.push(content_type, PieceEncoding::HeaderValue, compiler),
                    None => list.push_fixed(guessed_type(name).as_bytes()),
                }
                list.push_fixed(b"\r\n\r\n");
                list.push_fixed(bytes);
            }
            (MultipartValue::File { .. }, None) => {}
        }
        list.push_fixed(b"\r\n");
    }
    list.push_fixed(format!("--{boundary}--\r\n").as_bytes());
    format!("multipart/form-data; boundary={boundary}")
}

/// Boundary that is in none of the files. A boundary that does not change is rendered once.
fn boundary(parts: &[MultipartPart<'_>]) -> String {
    let contains = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let is_free = |boundary: &String| {
        let files = parts.iter().filter_map(|part| part.file.as_ref());
        files.into_iter().all(|(_, bytes)| !contains(bytes, boundary))
    };
    let named = |number: u64| format!("------------------------weir{number:020}");
    (0..).map(named).find(is_free).unwrap_or_else(|| named(0))
}

fn guessed_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = CONTENT_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    known.map_or(DEFAULT_CONTENT_TYPE, |(_, content_type)| content_type)
}

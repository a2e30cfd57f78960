//! Images of records.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::TextSpan;

/// Reader of an image's file, by the name that the data set has.
pub type ImageReader<'r> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'r;

/// Data URLs of images that were files; each file once.
#[derive(Debug, Default)]
pub(super) struct ImageFiles {
    known: HashMap<String, TextSpan>,
}

impl ImageFiles {
    /// Place of the data URL of a file, which is appended to `text` when it is first named.
    pub(super) fn data_url(
        &mut self,
        file: &str,
        text: &mut Vec<u8>,
        read: &mut ImageReader<'_>,
    ) -> Result<TextSpan, String> {
        if let Some(span) = self.known.get(file) {
            return Ok(*span);
        }
        let media_type = media_type(file)
            .ok_or_else(|| format!("unknown type of image '{file}'; write a URL, or a .png, .jpg, .gif or .webp"))?;
        let bytes = read(file)?;
        let start = text.len();
        text.extend_from_slice(format!("\"data:{media_type};base64,{}\"", BASE64_STANDARD.encode(bytes)).as_bytes());
        let span = TextSpan { start, end: text.len() };
        self.known.insert(file.to_owned(), span);
        Ok(span)
    }
}

/// Whether an image is given by a URL, and not as a file.
pub(super) fn is_url(image: &str) -> bool {
    ["http://", "https://", "data:", "gs://", "s3://"].iter().any(|scheme| image.starts_with(scheme))
}

fn media_type(file: &str) -> Option<&'static str> {
    let extension = file.rsplit_once('.')?.1.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

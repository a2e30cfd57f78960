//! Content of a message: a text, or a list of parts.

use super::record::RecordReader;
use super::{ContentPart, PartKind, TextSpan};
use crate::json_text::{elements, is_list, is_object, member, string_content};

impl RecordReader<'_, '_, '_> {
    /// Adds the parts of a message's content, in OpenAI's or Anthropic's form.
    pub(super) fn push_content(&mut self, content: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        if content == b"null" {
            return Ok(());
        }
        if !is_list(content) {
            return self.push_part_text(at(content)).map_err(|()| "expected a text or a list of parts".to_owned());
        }
        for part in elements(content) {
            if !is_object(part) {
                return Err("expected parts with a type".to_owned());
            }
            let kind = member(part, b"type").and_then(string_content).unwrap_or_default();
            match kind {
                b"text" | b"input_text" | b"output_text" => {
                    let text = member(part, b"text").unwrap_or(b"null");
                    self.push_part_text(at(text)).map_err(|()| "expected a part with a text".to_owned())?;
                }
                b"image_url" | b"input_image" => {
                    let image = member(part, b"image_url").ok_or("expected an image with image_url")?;
                    let url = if is_object(image) { member(image, b"url").unwrap_or(b"null") } else { image };
                    self.push_image(url, at(url))?;
                }
                _ => self.set.parts.push(ContentPart { kind: PartKind::Other, span: at(part) }),
            }
        }
        Ok(())
    }
}

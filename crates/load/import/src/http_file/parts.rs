//! Multipart bodies of a file: parts between lines with the boundary.

use weir_hurl::Template;

use super::message::{MessageReader, file_name};
use crate::multipart::{self, ImportedPart, PartContent};
use crate::request::ImportedStep;
use crate::text;

/// Header fields of one part of a multipart body.
#[derive(Debug, Default)]
struct PartHead {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    headers: Vec<String>,
}

impl PartHead {
    fn add(&mut self, line: &str) {
        let Some((header, value)) = line.split_once(':') else { return };
        if header.eq_ignore_ascii_case("content-disposition") {
            self.name = attribute(value, "name").unwrap_or_default();
            self.file_name = attribute(value, "filename");
        } else if header.eq_ignore_ascii_case("content-type") {
            self.content_type = Some(value.trim().to_owned());
        } else {
            self.headers.push(line.trim().to_owned());
        }
    }
}

/// Value of an attribute, in quotes or not.
fn attribute(text: &str, name: &str) -> Option<String> {
    let value = text.split(';').find_map(|part| part.trim().strip_prefix(name)?.trim_start().strip_prefix('='))?;
    Some(value.trim().trim_matches('"').to_owned())
}

impl MessageReader<'_> {
    /// Sets the parts between lines with the boundary.
    pub(super) fn multipart(&mut self, lines: &[(u32, &str)], media_type: &str, step: &mut ImportedStep) {
        let original = step.request.header("Content-Type").map(text::source).unwrap_or_default();
        let at = media_type.find("boundary=").map(|at| at + "boundary=".len());
        let boundary = at.and_then(|at| original.get(at..)).unwrap_or_default();
        let boundary = boundary.split(';').next().unwrap_or_default().trim().trim_matches('"').to_owned();
        let mut parts = Vec::new();
        let mut part: Option<PartHead> = None;
        let mut content: Vec<&str> = Vec::new();
        let mut is_head = false;
        for (line, text) in lines {
            let is_boundary = !boundary.is_empty()
                && text.trim_end().trim_start_matches('-').starts_with(boundary.trim_start_matches('-'))
                && text.starts_with("--");
            if is_boundary {
                parts.extend(part.take().map(|part| self.part(part, &content, *line)));
                content.clear();
                is_head = true;
                part = Some(PartHead::default());
            } else if is_head {
                is_head = !text.trim().is_empty();
                if let Some(part) = &mut part {
                    part.add(text);
                }
            } else {
                content.push(text);
            }
        }
        let last = lines.last().map_or(step.line, |(line, _)| *line);
        parts.extend(part.take().map(|part| self.part(part, &content, last)));
        parts.retain(|part| !text::is_empty(&part.name));
        multipart::set_body(step, &parts, self.session);
    }

    fn part(&mut self, head: PartHead, content: &[&str], line: u32) -> ImportedPart {
        let file = content.iter().find_map(|text| file_name(text));
        let content = match file {
            Some(file) => PartContent::File(file.to_owned()),
            None => PartContent::Text(self.template(content.join("\n").trim_end(), line)),
        };
        ImportedPart {
            name: self.template(&head.name, line),
            content,
            content_type: head.content_type.map(|kind| self.template(&kind, line)),
            file_name: head.file_name,
            headers: head.headers.iter().map(Template::text).collect(),
        }
    }
}

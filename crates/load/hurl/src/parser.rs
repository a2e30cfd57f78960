//! Parser of a file: lines to entries. After an error it goes on at the next line, section or entry, so that all
//! mistakes of a file are found at once.

use crate::assertion::Assertion;
use crate::body::HurlBody;
use crate::capture::Capture;
use crate::comment::Comment;
use crate::entry::{HurlEntry, HurlFile};
use crate::error::{ParseError, Parsed};
use crate::field::{FieldTemplate, MultipartField};
use crate::line::LineKind;
use crate::option::RequestOption;
use crate::reader::{Cursor, Reader};
use crate::request::HurlRequest;
use crate::response::ExpectedResponse;
use crate::section::SectionName;
use crate::template::Template;

/// Errors after which parsing stops. It bounds the time too, since an error may be found at the end of the file.
const MAX_ERRORS: usize = 100;

/// Parses the text of a `.hurl` file.
///
/// # Errors
/// All mistakes, in order, up to 100.
pub fn parse(text: &str) -> Result<HurlFile, Vec<ParseError>> {
    FileParser { reader: Reader::new(text), errors: Vec::new() }.parse()
}

#[derive(Debug)]
struct FileParser<'a> {
    reader: Reader<'a>,
    errors: Vec<ParseError>,
}

/// Part of an entry to which lines belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryPart {
    Headers,
    Section(SectionName),
    /// Section with an unknown name, or lines after a mistake.
    Skipped,
    AfterBody,
}

/// Entry that is being read.
#[derive(Debug)]
struct OpenEntry {
    entry: HurlEntry,
    part: EntryPart,
    /// Sections of the request or response so far.
    sections: Vec<SectionName>,
    /// Whether the line `HTTP 200` was read.
    has_response: bool,
}

impl FileParser<'_> {
    fn parse(mut self) -> Result<HurlFile, Vec<ParseError>> {
        let mut file = HurlFile::default();
        loop {
            self.reader.skip_blank_lines();
            let comments = self.reader.take_comments();
            if self.reader.is_end() || self.errors.len() >= MAX_ERRORS {
                file.comments = comments;
                break;
            }
            if LineKind::of(&mut self.reader, false) == LineKind::Request {
                file.entries.push(self.entry(comments));
            } else {
                let error = self.reader.expected("a request, such as 'GET http://host/path'");
                self.errors.push(error);
                self.skip_to(LineKind::is_request_anchor);
            }
        }
        self.errors.sort_by_key(|error| error.position);
        self.errors.truncate(MAX_ERRORS);
        if self.errors.is_empty() { Ok(file) } else { Err(self.errors) }
    }

    /// Reads an entry up to the next one.
    fn entry(&mut self, comments: Vec<Comment>) -> HurlEntry {
        let request = self.attempt(HurlRequest::read_line).unwrap_or_default();
        let entry = HurlEntry { comments, request, response: None };
        let mut open = OpenEntry { entry, part: EntryPart::Headers, sections: Vec::new(), has_response: false };
        while self.errors.len() < MAX_ERRORS {
            // Comments after this belong to the entry only if it goes on.
            open.entry.comments.append(&mut self.reader.take_comments());
            self.reader.skip_blank_lines();
            let is_assert = open.part == EntryPart::Section(SectionName::Asserts);
            match LineKind::of(&mut self.reader, is_assert) {
                LineKind::End | LineKind::Request => break,
                LineKind::Response => self.response(&mut open),
                LineKind::Section => self.section(&mut open),
                LineKind::Body => self.body(&mut open),
                LineKind::Item => self.item(&mut open),
            }
        }
        open.entry
    }

    /// Reads lines; after an error they are skipped.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Reader<'_>) -> Parsed<T>) -> Option<T> {
        let start = self.reader.cursor();
        match read(&mut self.reader) {
            Ok(node) => Some(node),
            Err(error) => {
                self.errors.push(error);
                self.skip_item(start);
                None
            }
        }
    }

    /// Skips the line at `start`, and a block that begins in it.
    fn skip_item(&mut self, start: Cursor) {
        self.reader.seek(start);
        let has_block = self.reader.line().matches("```").count() % 2 == 1;
        self.reader.skip_line();
        // Without its end, a block is a typing error, and the lines after it are read as usual.
        if has_block && self.reader.skip_past("```") {
            self.reader.skip_line();
        }
        // Comments of a line that is skipped belong to nothing.
        self.reader.take_comments();
    }

    /// Skips at least one line, up to one that fulfills a condition.
    fn skip_to(&mut self, is_end: impl Fn(&str) -> bool) {
        self.reader.skip_line();
        while !self.reader.is_end() && !is_end(self.reader.line()) {
            self.reader.skip_line();
        }
    }

    fn response(&mut self, open: &mut OpenEntry) {
        let start = self.reader.cursor();
        let response = self.attempt(ExpectedResponse::read_line).unwrap_or_default();
        if open.has_response {
            self.errors.push(self.reader.expected_at(start, "one response to a request"));
        }
        open.entry.response = Some(response);
        open.has_response = true;
        open.part = EntryPart::Headers;
        open.sections.clear();
    }

    fn section(&mut self, open: &mut OpenEntry) {
        let start = self.reader.cursor();
        let is_response = open.has_response;
        let is_after_body = open.part == EntryPart::AfterBody;
        let Some(section) = self.attempt(|reader| SectionName::read(reader, is_response)) else {
            open.part = EntryPart::Skipped;
            return;
        };
        open.part = EntryPart::Section(section);
        if section.is_of_response() && !is_response {
            let error = self.reader.expected_at(start, "a section of a request");
            self.errors.push(error.with_hint(format!("write a response, such as 'HTTP 200', before [{section}]")));
        } else if is_response && !section.is_of_response() {
            let error = self.reader.expected_at(start, "a section of a response: [Captures], [Asserts]");
            self.errors.push(error.with_hint(format!("[{section}] is before the response")));
        } else if is_after_body {
            let error = self.reader.expected_at(start, "a response or a request after a body");
            self.errors.push(error.with_hint("sections are before the body"));
        } else if open.sections.contains(&section) {
            self.errors.push(self.reader.expected_at(start, format!("one section [{section}]")));
        }
        open.sections.push(section);
    }

    fn body(&mut self, open: &mut OpenEntry) {
        if open.part == EntryPart::Skipped {
            return self.skip_item(self.reader.cursor());
        }
        let start = self.reader.cursor();
        let body = match HurlBody::read(&mut self.reader) {
            Ok(body) => body,
            Err(error) => {
                self.errors.push(error);
                self.skip_body(start);
                // Lines up to the next section have the same cause.
                open.part = EntryPart::Skipped;
                return;
            }
        };
        if open.part == EntryPart::AfterBody {
            self.errors.push(self.reader.expected_at(start, "a response or a request after a body"));
        }
        open.part = EntryPart::AfterBody;
        match &mut open.entry.response {
            Some(response) => response.body = Some(body),
            None => open.entry.request.body = Some(body),
        }
    }

    fn skip_body(&mut self, start: Cursor) {
        self.reader.seek(start);
        if self.reader.starts_with("```") {
            self.skip_item(start);
        } else {
            self.skip_to(LineKind::is_anchor);
        }
        self.reader.take_comments();
    }

    fn item(&mut self, open: &mut OpenEntry) {
        let OpenEntry { entry: HurlEntry { request, response, .. }, part, .. } = open;
        match part {
            EntryPart::Headers => {
                let headers = response.as_mut().map_or(&mut request.headers, |response| &mut response.headers);
                headers.extend(self.attempt(read_header));
            }
            EntryPart::AfterBody => {
                self.errors.push(self.reader.expected("a response or a request after a body"));
                self.skip_item(self.reader.cursor());
                // The lines after it have the same cause.
                *part = EntryPart::Skipped;
            }
            EntryPart::Skipped => self.skip_item(self.reader.cursor()),
            EntryPart::Section(SectionName::Query) => request.query.extend(self.attempt(FieldTemplate::read)),
            EntryPart::Section(SectionName::Form) => request.form.extend(self.attempt(FieldTemplate::read)),
            EntryPart::Section(SectionName::Cookies) => request.cookies.extend(self.attempt(FieldTemplate::read)),
            EntryPart::Section(SectionName::Multipart) => {
                request.multipart.extend(self.attempt(MultipartField::read));
            }
            EntryPart::Section(SectionName::Options) => request.options.extend(self.attempt(RequestOption::read)),
            EntryPart::Section(SectionName::BasicAuth) => {
                if request.basic_auth.is_some() {
                    self.errors.push(self.reader.expected("one user in [BasicAuth]"));
                }
                request.basic_auth = self.attempt(FieldTemplate::read).or(request.basic_auth.take());
            }
            EntryPart::Section(SectionName::Captures) => {
                response.get_or_insert_default().captures.extend(self.attempt(Capture::read));
            }
            EntryPart::Section(SectionName::Asserts) => {
                response.get_or_insert_default().asserts.extend(self.attempt(Assertion::read));
            }
        }
    }
}

/// Reads a line where a header may stand, and much else.
fn read_header(reader: &mut Reader<'_>) -> Parsed<FieldTemplate> {
    let start = reader.cursor();
    let position = reader.position();
    let is_name = match Template::read_key(reader) {
        Ok(_) => reader.starts_with(":") || (reader.skip_spaces() && !reader.is_word_end()),
        // A name with an invalid expression or escape sequence.
        Err(error) => error.position != position,
    };
    if !is_name {
        return Err(reader.expected_at(start, "a header, a section, a body, a response or a request"));
    }
    reader.seek(start);
    FieldTemplate::read(reader)
}

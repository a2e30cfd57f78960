//! Reader of one record.

use weir_base::Nanos;
use weir_base::units;

use super::images::{ImageFiles, ImageReader};
use super::kind::{PROMPT_NAMES, SHARE_GPT_NAMES};
use super::{
    ChatRole, ContentPart, Dataset, DatasetKind, DatasetMessage, DatasetRecord, PartKind, RecordContent, TextSpan,
};
use crate::json_text::{elements, is_list, is_object, member, members, string_text};

/// Names of the member with the number of tokens of a response.
const MAX_TOKENS_NAMES: [&[u8]; 5] =
    [b"max_tokens", b"output_tokens", b"output_len", b"output_length", b"completion_tokens"];
/// Names of the member with the image of a prompt, or a list of them.
const IMAGE_NAMES: [&[u8]; 3] = [b"image", b"images", b"image_url"];
/// Names of members of traces that would change the load, and are not read.
const UNUSED_NAMES: [&[u8]; 4] = [b"timestamp", b"arrival_time", b"arrival_timestamp", b"arrived_at"];
/// Names of members that a body of an API could have, and that are not taken from records.
const BODY_NAMES: [&str; 26] = [
    "best_of",
    "frequency_penalty",
    "ignore_eos",
    "logit_bias",
    "logprobs",
    "min_p",
    "min_tokens",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "repetition_penalty",
    "response_format",
    "sampling_params",
    "seed",
    "stop",
    "stop_token_ids",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "user",
];
/// Maximum of a think time of a data set: a day.
const MAX_THINK_MS: f64 = 86_400_000.0;

/// Reader of one record after another.
pub(super) struct RecordReader<'d, 'r, 'i> {
    pub(super) set: &'d mut Dataset,
    pub(super) files: &'d mut ImageFiles,
    pub(super) images: &'r mut ImageReader<'i>,
}

/// The name, if it is one of [`BODY_NAMES`].
fn body_name(name: &[u8]) -> Option<&'static str> {
    BODY_NAMES.into_iter().find(|known| known.as_bytes() == name)
}

impl RecordReader<'_, '_, '_> {
    /// Adds a record of the set's kind.
    pub(super) fn read(&mut self, line: u64, span: TextSpan) -> Result<(), String> {
        // Places are found in a copy, since the set grows while it is read; records are small beside their file.
        let record = self.set.text(span).to_vec();
        let at = |part: &[u8]| place(&record, span, part);
        if let Some(name) = UNUSED_NAMES.iter().find(|name| member(&record, name).is_some()) {
            let name = String::from_utf8_lossy(name);
            return Err(format!(
                "{name} is not used: requests begin by --rate or --concurrency; remove it, e.g. with jq -c \
                 'del(.{name})', or replay a trace with --trace FILE, in one of its formats"
            ));
        }
        if !matches!(self.set.kind, DatasetKind::Strings | DatasetKind::Batch) {
            let known = members(&record).into_iter().filter_map(|(name, _)| body_name(name));
            self.set.unsent.extend(known);
        }
        let max_tokens = max_tokens(&record)?;
        let first_message = self.set.messages.len();
        match self.set.kind {
            // Lines of text have no record.
            DatasetKind::Lines => {}
            DatasetKind::Strings => self.push_text(ChatRole::User, at(&record), None)?,
            DatasetKind::Prompts => self.push_prompt(&record, &at)?,
            DatasetKind::Messages => {
                let list = member(&record, b"messages").or_else(|| member(&record, b"prompt")).unwrap_or_default();
                self.push_messages(list, &at)?;
            }
            DatasetKind::Turns => {
                if let Some(system) = member(&record, b"system") {
                    self.push_text(ChatRole::System, at(system), None)?;
                }
                self.push_turns(member(&record, b"turns").unwrap_or_default(), &at)?;
            }
            DatasetKind::ShareGpt => {
                let list = SHARE_GPT_NAMES.iter().find_map(|name| member(&record, name)).unwrap_or_default();
                self.push_share_gpt(list, &at)?;
            }
            DatasetKind::Batch => return self.push_batch(line, &record, &at),
        }
        let messages = first_message..self.set.messages.len();
        let has_user = self.set.messages[messages.clone()].iter().any(|message| message.role == ChatRole::User);
        if !has_user {
            self.set.messages.truncate(first_message);
            self.set.skipped += 1;
            return Ok(());
        }
        self.set.records.push(DatasetRecord { line, content: RecordContent::Messages(messages), max_tokens });
        Ok(())
    }

    fn push_batch(&mut self, line: u64, record: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        let url = member(record, b"url").map(|url| string_text(url).ok_or("expected a text as url")).transpose()?;
        match (&self.set.batch_url, url) {
            (Some(known), Some(url)) if *known != url => {
                return Err(format!("expected the url {known} as before; found {url}"));
            }
            (None, url) => self.set.batch_url = url,
            _ => {}
        }
        let body = member(record, b"body").unwrap_or_default();
        self.set.records.push(DatasetRecord { line, content: RecordContent::Body(at(body)), max_tokens: None });
        Ok(())
    }

    fn push_prompt(&mut self, record: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        if let Some(system) = member(record, b"system") {
            self.push_text(ChatRole::System, at(system), None)?;
        }
        let (name, text) =
            PROMPT_NAMES.iter().find_map(|name| Some((*name, member(record, name)?))).unwrap_or_default();
        let first_part = self.set.parts.len();
        self.push_part_text(at(text)).map_err(|()| format!("expected a text as {}", String::from_utf8_lossy(name)))?;
        self.push_images(record, at)?;
        self.end_message(ChatRole::User, first_part, None, None);
        Ok(())
    }

    fn push_images(&mut self, record: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        for (_, value) in members(record).into_iter().filter(|(name, _)| IMAGE_NAMES.contains(name)) {
            let images = if is_list(value) { elements(value) } else { vec![value] };
            for image in images {
                self.push_image(image, at(image))?;
            }
        }
        Ok(())
    }

    /// Adds an image, by URL or file.
    pub(super) fn push_image(&mut self, image: &[u8], span: TextSpan) -> Result<(), String> {
        let text = string_text(image).ok_or("expected an image as a URL or file")?;
        let span = match super::images::is_url(&text) {
            true => span,
            false => self.files.data_url(&text, &mut self.set.text, self.images)?,
        };
        self.set.parts.push(ContentPart { kind: PartKind::Image, span });
        Ok(())
    }

    fn push_messages(&mut self, list: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        if !is_list(list) {
            return Err("expected a list of messages".to_owned());
        }
        for message in elements(list) {
            let role = member(message, b"role").and_then(string_text).ok_or("expected a message with a role")?;
            let role = match role.as_str() {
                "system" | "developer" => ChatRole::System,
                "user" => ChatRole::User,
                "assistant" => ChatRole::Assistant,
                "tool" | "function" => ChatRole::Tool,
                _ => return Err(format!("unknown role '{role}'; write system, user, assistant or tool")),
            };
            let first_part = self.set.parts.len();
            let content = member(message, b"content").unwrap_or(b"null");
            self.push_content(content, at).map_err(|why| format!("{why} as content of the message"))?;
            let is_known = |name: &[u8]| matches!(name, b"role" | b"content" | b"delay");
            let has_more = members(message).iter().any(|(name, _)| !is_known(name));
            self.end_message(role, first_part, has_more.then(|| at(message)), delay(message)?);
        }
        Ok(())
    }

    fn push_turns(&mut self, list: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        if !is_list(list) {
            return Err("expected a list of turns".to_owned());
        }
        for turn in elements(list) {
            let first_part = self.set.parts.len();
            let text = if is_object(turn) {
                PROMPT_NAMES.iter().find_map(|name| member(turn, name)).ok_or("expected a turn with a text")?
            } else {
                turn
            };
            self.push_part_text(at(text)).map_err(|()| "expected a text as turn".to_owned())?;
            self.push_images(turn, at)?;
            self.end_message(ChatRole::User, first_part, None, delay(turn)?);
        }
        Ok(())
    }

    fn push_share_gpt(&mut self, list: &[u8], at: &dyn Fn(&[u8]) -> TextSpan) -> Result<(), String> {
        if !is_list(list) {
            return Err("expected a list as conversations".to_owned());
        }
        let first_message = self.set.messages.len();
        for message in elements(list) {
            let from = member(message, b"from").and_then(string_text);
            let value = member(message, b"value");
            let (Some(from), Some(value)) = (from, value) else {
                return Err("expected messages with from and value".to_owned());
            };
            let role = match from.as_str() {
                "human" | "user" => ChatRole::User,
                "system" => ChatRole::System,
                _ => ChatRole::Assistant,
            };
            // Parts of conversations begin with what a model said.
            if role == ChatRole::Assistant && self.set.messages.len() == first_message {
                continue;
            }
            self.push_text(role, at(value), None).map_err(|_| "expected a text as value".to_owned())?;
        }
        Ok(())
    }

    /// Adds a message of one text, which is a JSON string.
    fn push_text(&mut self, role: ChatRole, text: TextSpan, think: Option<Nanos>) -> Result<(), String> {
        let first_part = self.set.parts.len();
        self.push_part_text(text).map_err(|()| format!("expected a text as {} prompt", role.name()))?;
        self.end_message(role, first_part, None, think);
        Ok(())
    }

    /// Adds a text, if it is a JSON string.
    pub(super) fn push_part_text(&mut self, span: TextSpan) -> Result<(), ()> {
        if self.set.text(span).first() != Some(&b'"') {
            return Err(());
        }
        self.set.parts.push(ContentPart { kind: PartKind::JsonText, span });
        Ok(())
    }

    fn end_message(&mut self, role: ChatRole, first_part: usize, raw: Option<TextSpan>, think: Option<Nanos>) {
        let parts = first_part..self.set.parts.len();
        self.set.messages.push(DatasetMessage { role, parts, raw, think });
    }
}

/// Place in the file of a part of a record. What stands in for a part that is missing is not of the record: its place
/// is empty.
fn place(record: &[u8], span: TextSpan, part: &[u8]) -> TextSpan {
    if !record.as_ptr_range().contains(&part.as_ptr()) {
        return TextSpan { start: span.start, end: span.start };
    }
    let start = span.start + (part.as_ptr() as usize - record.as_ptr() as usize);
    TextSpan { start, end: start + part.len() }
}

fn max_tokens(record: &[u8]) -> Result<Option<u64>, String> {
    let Some((name, value)) = MAX_TOKENS_NAMES.iter().find_map(|name| Some((name, member(record, name)?))) else {
        return Ok(None);
    };
    let count = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).filter(|count| *count > 0);
    count.map(Some).ok_or_else(|| format!("expected a number of tokens from 1 as {}", String::from_utf8_lossy(name)))
}

/// Think time before a message: milliseconds, as AIPerf has them, or a time such as `"2s"`.
fn delay(message: &[u8]) -> Result<Option<Nanos>, String> {
    let Some(value) = member(message, b"delay").filter(|value| *value != b"null") else { return Ok(None) };
    let wrong = || r#"expected milliseconds as delay, or a time such as "2s""#.to_owned();
    if let Some(text) = string_text(value) {
        return units::time(&text).map(|time| Some(time.into())).map_err(|_| wrong());
    }
    let ms = std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok()).ok_or_else(wrong)?;
    if !(0.0..=MAX_THINK_MS).contains(&ms) {
        return Err(wrong());
    }
    Ok(Some(Nanos::from_secs_f64(ms / 1e3)))
}

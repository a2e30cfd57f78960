//! Bodies of requests, written when they are needed.

use std::collections::HashSet;
use std::io::Write as _;

use weir_events::llm::LlmApi;

use super::RequestSettings;
use super::body_template::TemplateItem;
use super::message_writer::{MessageWriter, data_of_url};
use crate::conversation_state::ConversationState;
use crate::dataset::{ChatRole, Dataset, DatasetMessage, PartKind, RecordContent};
use crate::json_text::{is_object, members, push_escaped, push_string, string_text};
use crate::prompt_source::{PromptSource, RequestMessage, TurnContent};

/// Maximum number of tokens where the API demands one and there is none.
const DEFAULT_MAX_TOKENS: u64 = 1024;
/// Name of the minimum number of tokens of a response.
const MIN_TOKENS: &[u8] = b"min_tokens";

/// Writer of request bodies, with the members that all of them share.
#[derive(Debug)]
pub struct RequestBodies {
    settings: RequestSettings,
    prompts: PromptSource,
    /// Members that are the same in all bodies, with a comma behind each.
    common: Vec<u8>,
    /// Members of the object with the options of the sampling, where the API has one: each with a comma behind it.
    sampling: Vec<u8>,
    /// Names of the common members, and of those that are removed.
    replaced: HashSet<Vec<u8>>,
}

impl RequestBodies {
    /// Bodies with these prompts.
    ///
    /// # Errors
    /// One line: a setting or record that the API does not have.
    pub fn new(settings: RequestSettings, prompts: PromptSource) -> Result<Self, String> {
        let mut bodies = Self { settings, prompts, common: Vec::new(), sampling: Vec::new(), replaced: HashSet::new() };
        if bodies.settings.template.is_some() {
            bodies.check_template()?;
        } else {
            bodies.add_common()?;
            bodies.add_extra()?;
        }
        if let Some(set) = bodies.prompts.dataset() {
            bodies.check(set)?;
        }
        Ok(bodies)
    }

    /// Prompts.
    pub fn prompts(&self) -> &PromptSource {
        &self.prompts
    }

    /// Settings.
    pub fn settings(&self) -> &RequestSettings {
        &self.settings
    }

    /// Appends the body of a conversation's turn.
    pub fn push_body(&self, state: &ConversationState, out: &mut Vec<u8>) {
        let (conversation, turn) = (state.conversation(), state.turn());
        let (max_tokens, content) = match state.traced_turn() {
            Some(turn) => (Some(turn.output_tokens), TurnContent::of_trace(turn)),
            None => {
                let max_tokens = self.prompts.max_tokens(conversation, turn);
                (max_tokens, self.prompts.turn(conversation, turn, state.replies()))
            }
        };
        let messages = match content {
            TurnContent::Body(body) => return self.push_batch_body(body, max_tokens, out),
            TurnContent::Messages(messages) => messages,
        };
        let writer = MessageWriter { api: self.settings.api, prompts: &self.prompts, conversation };
        if let Some(template) = &self.settings.template {
            return self.push_template(&template.0, writer, &messages, max_tokens, out);
        }
        out.push(b'{');
        out.extend_from_slice(&self.common);
        self.push_max_tokens(max_tokens, out);
        match self.settings.api {
            LlmApi::Chat | LlmApi::Ollama => {
                out.extend_from_slice(br#""messages":"#);
                writer.push_messages(&messages, out);
            }
            LlmApi::Responses => {
                out.extend_from_slice(br#""input":"#);
                writer.push_messages(&messages, out);
            }
            LlmApi::Messages => {
                let (system, others): (Vec<_>, Vec<_>) =
                    messages.iter().partition(|message| message.role == ChatRole::System);
                if !system.is_empty() {
                    out.extend_from_slice(br#""system":"#);
                    writer.push_prompt(&system, out);
                    out.push(b',');
                }
                out.extend_from_slice(br#""messages":"#);
                writer.push_messages(&others, out);
            }
            LlmApi::Completions | LlmApi::OllamaGenerate => {
                out.extend_from_slice(br#""prompt":"#);
                writer.push_prompt(&messages, out);
            }
            LlmApi::Embeddings => {
                out.extend_from_slice(br#""input":"#);
                writer.push_prompt(&messages, out);
            }
            LlmApi::Tgi => {
                out.extend_from_slice(br#""inputs":"#);
                writer.push_prompt(&messages, out);
            }
        }
        out.push(b'}');
    }

    /// Members that are the same in all bodies.
    fn add_common(&mut self) -> Result<(), String> {
        let RequestSettings { api, model, streams, ignores_end, temperature, .. } = self.settings.clone();
        let has_sampling = sampling_name(api).is_some();
        if let Some(model) = &model {
            let mut name = Vec::new();
            push_string(model, &mut name);
            self.add(b"model", &name);
        }
        if !matches!(api, LlmApi::Embeddings | LlmApi::Tgi) {
            self.add(b"stream", if streams { b"true" } else { b"false" });
        }
        if streams && matches!(api, LlmApi::Chat | LlmApi::Completions) {
            self.add(b"stream_options", br#"{"include_usage":true}"#);
        }
        if let Some(temperature) = temperature {
            let text = temperature.to_string();
            if has_sampling {
                self.add_sampling(b"temperature", text.as_bytes());
            } else {
                self.add(b"temperature", text.as_bytes());
            }
        }
        if ignores_end {
            if !api.has_ignore_eos() {
                return Err(format!("the API {} has no ignore_eos; it is one of chat and completions", api.name()));
            }
            self.add(b"ignore_eos", b"true");
        }
        if api == LlmApi::Tgi {
            // The last event then has the number of tokens.
            self.add_sampling(b"details", b"true");
        }
        Ok(())
    }

    /// Extra members replace the common ones.
    fn add_extra(&mut self) -> Result<(), String> {
        let settings = self.settings.clone();
        for (name, value) in settings.extra_members()? {
            if [&b"messages"[..], b"prompt", b"input", b"inputs"].contains(&name) {
                return Err(format!(
                    "--extra-body: {} is the prompt; give it with a data set",
                    String::from_utf8_lossy(name)
                ));
            }
            let is_sampling = sampling_name(settings.api).is_some_and(|own| own.as_bytes() == name);
            if is_sampling && is_object(value) {
                for (name, value) in members(value) {
                    self.add_sampling(name, value);
                }
            } else if value == b"null" {
                remove(&mut self.common, name);
                self.replaced.insert(name.to_vec());
            } else {
                self.add(name, value);
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        remove(&mut self.common, name);
        push_member(name, value, &mut self.common);
        self.replaced.insert(name.to_vec());
    }

    fn add_sampling(&mut self, name: &[u8], value: &[u8]) {
        remove(&mut self.sampling, name);
        push_member(name, value, &mut self.sampling);
    }

    /// Appends the maximum number of tokens, with the other options of the sampling.
    fn push_max_tokens(&self, max_tokens: Option<u64>, out: &mut Vec<u8>) {
        let api = self.settings.api;
        let name = max_tokens_name(api);
        if let Some(object) = sampling_name(api) {
            if self.replaced.contains(object.as_bytes()) {
                return;
            }
            let mut options = self.sampling.clone();
            if let Some(max_tokens) = max_tokens
                && !members(&[b"{", &self.sampling[..], b"\"\":0}"].concat()).iter().any(|(own, _)| *own == name)
            {
                push_member(name, max_tokens.to_string().as_bytes(), &mut options);
            }
            if options.pop().is_some() {
                push_member(object.as_bytes(), &[b"{", &options[..], b"}"].concat(), out);
            }
            return;
        }
        let max_tokens = max_tokens.or((api == LlmApi::Messages).then_some(DEFAULT_MAX_TOKENS));
        if let (Some(max_tokens), false, false) = (max_tokens, api == LlmApi::Embeddings, self.replaced.contains(name))
        {
            push_member(name, max_tokens.to_string().as_bytes(), out);
            if self.settings.has_minimum && !self.replaced.contains(MIN_TOKENS) {
                push_member(MIN_TOKENS, max_tokens.to_string().as_bytes(), out);
            }
        }
    }

    /// Appends a body of a batch: its members stay but for those that all bodies have in common.
    fn push_batch_body(&self, body: &[u8], max_tokens: Option<u64>, out: &mut Vec<u8>) {
        let max_tokens_name = max_tokens_name(self.settings.api);
        out.push(b'{');
        out.extend_from_slice(&self.common);
        for (name, value) in members(body) {
            let is_replaced = self.replaced.contains(name)
                || (name == b"stream_options" && !self.settings.streams)
                || (max_tokens.is_some()
                    && matches!(name, b"max_tokens" | b"max_completion_tokens" | b"max_output_tokens"));
            if !is_replaced {
                push_member(name, value, out);
            }
        }
        if let Some(max_tokens) = max_tokens.filter(|_| !self.replaced.contains(max_tokens_name)) {
            push_member(max_tokens_name, max_tokens.to_string().as_bytes(), out);
        }
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.push(b'}');
    }

    fn push_template(
        &self,
        items: &[TemplateItem],
        writer: MessageWriter<'_>,
        messages: &[RequestMessage<'_>],
        max_tokens: Option<u64>,
        out: &mut Vec<u8>,
    ) {
        for item in items {
            match item {
                TemplateItem::Literal(text) => out.extend_from_slice(text.as_bytes()),
                TemplateItem::Prompt => writer.push_prompt_content(messages, out),
                TemplateItem::Messages => writer.push_messages(messages, out),
                TemplateItem::Model => push_escaped(self.settings.model.as_deref().unwrap_or_default(), out),
                TemplateItem::MaxTokens => match max_tokens {
                    Some(max_tokens) => {
                        let _ = write!(out, "{max_tokens}");
                    }
                    None => out.extend_from_slice(b"null"),
                },
                TemplateItem::Streams => {
                    out.extend_from_slice(if self.settings.streams { b"true" } else { b"false" });
                }
            }
        }
    }

    /// Checks that a template makes JSON.
    fn check_template(&self) -> Result<(), String> {
        if !self.settings.extra.trim().is_empty() {
            return Err(
                "--extra-body cannot be used with --body-template; write its members in the template".to_owned()
            );
        }
        let mut body = Vec::new();
        self.push_body(&ConversationState::default(), &mut body);
        match serde_json::from_slice::<&serde_json::value::RawValue>(&body) {
            Ok(_) => Ok(()),
            Err(why) => Err(format!(
                "the template is not JSON once it is filled in: {why}; {{{{prompt}}}} stands within quotes, \
                 {{{{messages}}}}, {{{{max_tokens}}}} and {{{{stream}}}} without"
            )),
        }
    }

    /// Checks that the API has what the records of a data set have.
    fn check(&self, set: &Dataset) -> Result<(), String> {
        let api = self.settings.api;
        for index in 0..set.count() {
            let record = set.record(index);
            let error = |reason: String| set.error_at(index, reason).to_string();
            if let (RecordContent::Body(_), true) = (&record.content, self.settings.template.is_some()) {
                return Err(error("a batch has whole bodies; leave out the template".to_owned()));
            }
            for message in set.messages(record) {
                self.check_message(set, message)
                    .map_err(|why| error(format!("the API {} takes no {why}", api.name())))?;
            }
        }
        Ok(())
    }

    fn check_message(&self, set: &Dataset, message: &DatasetMessage) -> Result<(), String> {
        let api = self.settings.api;
        let is_chat = api == LlmApi::Chat && self.settings.template.is_none();
        if message.role == ChatRole::Tool && !is_chat {
            return Err("tool messages".to_owned());
        }
        for part in set.parts(message) {
            match part.kind {
                PartKind::PlainText | PartKind::JsonText => {}
                PartKind::Other if is_chat => {}
                PartKind::Other => return Err("parts other than texts and images".to_owned()),
                PartKind::Image => {
                    let url = string_text(set.text(part.span)).unwrap_or_default();
                    let has_images =
                        matches!(api, LlmApi::Chat | LlmApi::Responses | LlmApi::Messages | LlmApi::Ollama);
                    if !has_images || self.settings.template.is_some() {
                        return Err("images".to_owned());
                    }
                    if api == LlmApi::Ollama && data_of_url(&url).is_none() {
                        return Err("images by URL; write a data: URL or a file".to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends a member with a comma behind it.
fn push_member(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(name);
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value);
    out.push(b',');
}

/// Removes a member from members with a comma behind each.
fn remove(list: &mut Vec<u8>, name: &[u8]) {
    let object = [b"{", &list[..], b"\"\":0}"].concat();
    let mut kept = Vec::new();
    for (own, value) in members(&object) {
        if own != name && !own.is_empty() {
            push_member(own, value, &mut kept);
        }
    }
    *list = kept;
}

/// Name of the maximum number of tokens of a response.
fn max_tokens_name(api: LlmApi) -> &'static [u8] {
    match api {
        LlmApi::Responses => b"max_output_tokens",
        LlmApi::Ollama | LlmApi::OllamaGenerate => b"num_predict",
        LlmApi::Tgi => b"max_new_tokens",
        _ => b"max_tokens",
    }
}

/// Name of the object with the options of the sampling, if the API has one.
fn sampling_name(api: LlmApi) -> Option<&'static str> {
    match api {
        LlmApi::Ollama | LlmApi::OllamaGenerate => Some("options"),
        LlmApi::Tgi => Some("parameters"),
        _ => None,
    }
}

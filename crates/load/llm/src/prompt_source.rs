//! Sources of a load's prompts.

use weir_base::Nanos;
use weir_base::rng::SeededRng;

use super::dataset::{ChatRole, ContentPart, Dataset, DatasetMessage, PartKind, RecordContent, TextSpan};
use super::json_text::{push_escaped, string_content};
use super::random_prompts::{RandomPrompts, push_prefix, stream};
use super::token_count::TokenCount;
use super::trace::{BlockText, TraceTurn};
use super::word_text::WordText;

/// Stream of random numbers that the order of a file is made from.
const ORDER_SALT: u64 = 0x6c6c_6d03;
/// Stream of random numbers that numbers of tokens of responses are made from.
const OUTPUT_SALT: u64 = 0x6c6c_6d04;

/// Order in which the conversations of a file are played; behind the last one it begins anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptOrder {
    /// As they are in the file.
    #[default]
    File,
    /// Shuffled, by seed.
    Shuffled,
}

/// Source of a load's prompts: a data set, or random words.
#[derive(Debug)]
pub struct PromptSource {
    prompts: Prompts,
    /// Conversations of the data set in the order of the load; as in the file if empty.
    shuffled: Vec<u32>,
    /// Prefixes that prompts share, as contents of JSON strings.
    prefixes: Vec<Vec<u8>>,
    /// Number of tokens of responses, in place of those of the data set.
    output: Option<TokenCount>,
    /// Maximum number of turns of a conversation.
    max_turns: usize,
    seed: u64,
}

#[derive(Debug)]
enum Prompts {
    Dataset(Dataset),
    Random(RandomPrompts, WordText),
    /// Text of the requests of a trace, which conversations have.
    Traced(BlockText),
}

/// Source of a message's text: the data set, an earlier response, or random words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageContent<'p> {
    /// Parts of a data set.
    Parts(&'p [ContentPart]),
    /// Content of a JSON string.
    Reply(&'p [u8]),
    /// Random words of this turn.
    Random(usize),
    /// Prompt of a trace's request.
    Traced(&'p TraceTurn),
}

/// Message of a conversation, ready to be written into a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMessage<'p> {
    pub(crate) role: ChatRole,
    pub(crate) content: MessageContent<'p>,
    /// The whole message as JSON, if it has more than role and content.
    pub(crate) raw: Option<&'p [u8]>,
    /// Content of a JSON string in front of its text.
    pub(crate) prefix: &'p [u8],
}

/// Content of a turn's request.
#[derive(Debug)]
pub(crate) enum TurnContent<'p> {
    /// Body of a batch.
    Body(&'p [u8]),
    /// Messages up to the turn.
    Messages(Vec<RequestMessage<'p>>),
}

impl<'p> TurnContent<'p> {
    /// Request of a trace: one message of a user.
    pub(crate) fn of_trace(turn: &'p TraceTurn) -> Self {
        let content = MessageContent::Traced(turn);
        Self::Messages(vec![RequestMessage { role: ChatRole::User, content, raw: None, prefix: b"" }])
    }
}

impl PromptSource {
    /// Conversations of a data set.
    pub fn of_dataset(dataset: Dataset, order: PromptOrder, seed: u64) -> Self {
        let shuffled = match order {
            PromptOrder::File => Vec::new(),
            PromptOrder::Shuffled => shuffled(dataset.count(), seed),
        };
        Self {
            prompts: Prompts::Dataset(dataset),
            shuffled,
            prefixes: Vec::new(),
            output: None,
            max_turns: usize::MAX,
            seed,
        }
    }

    /// Random words.
    pub fn of_random(prompts: RandomPrompts) -> Self {
        Self {
            prompts: Prompts::Random(prompts, WordText::new(prompts.seed)),
            shuffled: Vec::new(),
            prefixes: Vec::new(),
            output: None,
            max_turns: usize::MAX,
            seed: prompts.seed,
        }
    }

    /// Prompts of a trace's requests, which conversations have.
    pub fn of_trace(text: BlockText) -> Self {
        Self {
            prompts: Prompts::Traced(text),
            shuffled: Vec::new(),
            prefixes: Vec::new(),
            output: None,
            max_turns: usize::MAX,
            seed: 0,
        }
    }

    /// The same with responses of this number of tokens.
    #[must_use]
    pub fn with_output(self, output: Option<TokenCount>) -> Self {
        Self { output, ..self }
    }

    /// The same with at most this number of turns of a conversation, >= 1.
    #[must_use]
    pub fn with_max_turns(self, max_turns: usize) -> Self {
        Self { max_turns: max_turns.max(1), ..self }
    }

    /// The same with `count` prefixes of `words` random words, of which each conversation has one in front of its first
    /// text.
    #[must_use]
    pub fn with_prefixes(self, words: u64, count: u64) -> Self {
        if words == 0 {
            return self;
        }
        let text = WordText::new(self.seed);
        let prefix = |number| {
            let mut prefix = Vec::new();
            push_prefix(&text, self.seed, number, words, &mut prefix);
            prefix.push(b' ');
            prefix
        };
        let prefixes = (0..count).map(prefix).collect();
        Self { prefixes, ..self }
    }

    /// Data set, if prompts are from one.
    pub fn dataset(&self) -> Option<&Dataset> {
        match &self.prompts {
            Prompts::Dataset(dataset) => Some(dataset),
            Prompts::Random(..) | Prompts::Traced(_) => None,
        }
    }

    /// Whether a conversation has several turns.
    pub fn has_turns(&self) -> bool {
        let count = self.dataset().map_or(1, Dataset::count);
        (0..count as u64).any(|conversation| self.turns(conversation) > 1)
    }

    /// Number of turns of a conversation, >= 1.
    pub fn turns(&self, conversation: u64) -> usize {
        let turns = match &self.prompts {
            Prompts::Random(random, _) => random.turns,
            Prompts::Traced(_) => 1,
            Prompts::Dataset(set) => {
                let record = set.record(self.record_index(conversation));
                turn_ends(set.messages(record)).count()
            }
        };
        turns.clamp(1, self.max_turns)
    }

    /// Think time before a turn, if the data set has one.
    pub fn think(&self, conversation: u64, turn: usize) -> Option<Nanos> {
        let Prompts::Dataset(set) = &self.prompts else { return None };
        let messages = set.messages(set.record(self.record_index(conversation)));
        messages.get(turn_ends(messages).nth(turn)?)?.think
    }

    /// Whether the data set has a model's reply to a turn.
    pub(crate) fn has_reply(&self, conversation: u64, turn: usize) -> bool {
        let Prompts::Dataset(set) = &self.prompts else { return false };
        let messages = set.messages(set.record(self.record_index(conversation)));
        let end = turn_ends(messages).nth(turn);
        end.and_then(|end| messages.get(end + 1)).is_some_and(|next| next.role == ChatRole::Assistant)
    }

    /// Maximum number of tokens of the response to a turn, if there is one.
    pub(crate) fn max_tokens(&self, conversation: u64, turn: usize) -> Option<u64> {
        if let Some(output) = self.output {
            return Some(output.draw(&mut stream(self.seed, OUTPUT_SALT + turn as u64, conversation)));
        }
        self.dataset().and_then(|set| set.record(self.record_index(conversation)).max_tokens)
    }

    /// Content of a turn's request. `replies` are the server's responses to earlier turns, as contents of JSON strings;
    /// they replace those of the data set.
    pub(crate) fn turn<'p>(
        &'p self,
        conversation: u64,
        turn: usize,
        replies: &'p [Option<Vec<u8>>],
    ) -> TurnContent<'p> {
        let mut messages = Vec::new();
        let reply = |turn: usize| replies.get(turn).and_then(Option::as_deref);
        let assistant = |text: &'p [u8]| RequestMessage {
            role: ChatRole::Assistant,
            content: MessageContent::Reply(text),
            raw: None,
            prefix: b"",
        };
        match &self.prompts {
            Prompts::Traced(_) => {}
            Prompts::Random(..) => {
                for earlier in 0..=turn {
                    let content = MessageContent::Random(earlier);
                    messages.push(RequestMessage { role: ChatRole::User, content, raw: None, prefix: b"" });
                    messages.extend((earlier < turn).then(|| assistant(reply(earlier).unwrap_or_default())));
                }
            }
            Prompts::Dataset(set) => {
                let record = set.record(self.record_index(conversation));
                if let RecordContent::Body(span) = record.content {
                    return TurnContent::Body(set.text(span));
                }
                let all = set.messages(record);
                let mut begin = 0;
                for (number, end) in turn_ends(all).enumerate().take(turn + 1) {
                    // What is before the end of a turn is the reply to the turn before it, and what its user says.
                    let replied = number.checked_sub(1).and_then(reply);
                    messages.extend(replied.map(assistant));
                    let own = all[begin..=end].iter();
                    let own = own.filter(|message| replied.is_none() || !is_of_reply(message));
                    messages.extend(own.map(|message| RequestMessage {
                        role: message.role,
                        content: MessageContent::Parts(set.parts(message)),
                        raw: message.raw.map(|span| set.text(span)),
                        prefix: b"",
                    }));
                    begin = end + 1;
                }
            }
        }
        if !self.prefixes.is_empty()
            && let Some(first) = messages.iter_mut().find(|message| message.role == ChatRole::User)
        {
            let number = conversation % self.prefixes.len() as u64;
            first.prefix = &self.prefixes[usize::try_from(number).unwrap_or(0)];
        }
        TurnContent::Messages(messages)
    }

    /// Appends the text of a message as content of a JSON string; its parts are joined by line breaks.
    pub(crate) fn push_text(&self, conversation: u64, message: &RequestMessage<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(message.prefix);
        match message.content {
            MessageContent::Reply(text) => out.extend_from_slice(text),
            MessageContent::Random(turn) => {
                if let Prompts::Random(random, words) = &self.prompts {
                    random.push_words(words, conversation, turn, out);
                }
            }
            MessageContent::Traced(turn) => {
                self.push_traced(turn, out);
            }
            MessageContent::Parts(parts) => {
                let texts = parts.iter().filter(|part| matches!(part.kind, PartKind::PlainText | PartKind::JsonText));
                for (index, part) in texts.enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b"\\n");
                    }
                    self.push_part(part, out);
                }
            }
        }
    }

    /// Appends the texts of all messages that the request of a conversation's turn has, as content of a JSON string;
    /// false without any, for the body of a batch.
    pub(crate) fn push_prompt_text(
        &self,
        (conversation, turn): (u64, usize),
        replies: &[Option<Vec<u8>>],
        out: &mut Vec<u8>,
    ) -> bool {
        let TurnContent::Messages(messages) = self.turn(conversation, turn, replies) else {
            return false;
        };
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\\n");
            }
            self.push_text(conversation, message, out);
        }
        true
    }

    /// Appends the prompt of a trace's request, as content of a JSON string; false without a trace.
    pub(crate) fn push_traced(&self, turn: &TraceTurn, out: &mut Vec<u8>) -> bool {
        let Prompts::Traced(text) = &self.prompts else { return false };
        text.push_prompt(turn, out);
        true
    }

    /// Appends a text as content of a JSON string.
    pub(crate) fn push_part(&self, part: &ContentPart, out: &mut Vec<u8>) {
        let text = self.span(part.span);
        match part.kind {
            PartKind::PlainText => push_escaped(&String::from_utf8_lossy(text), out),
            _ => out.extend_from_slice(string_content(text).unwrap_or_default()),
        }
    }

    /// Text of a data set at a place.
    pub(crate) fn span(&self, span: TextSpan) -> &[u8] {
        self.dataset().map_or(&[], |set| set.text(span))
    }

    /// Index in the file of a conversation of the load.
    pub(crate) fn record_index(&self, conversation: u64) -> usize {
        let Prompts::Dataset(set) = &self.prompts else { return 0 };
        let at = usize::try_from(conversation % set.count() as u64).unwrap_or(0);
        self.shuffled.get(at).map_or(at, |index| *index as usize)
    }
}

/// Whether a message belongs to the reply to a turn.
fn is_of_reply(message: &DatasetMessage) -> bool {
    matches!(message.role, ChatRole::Assistant | ChatRole::Tool)
}

/// Indices of the messages that end a turn, since a model replies to them: those of users, and the last result of
/// tools.
fn turn_ends(messages: &[DatasetMessage]) -> impl Iterator<Item = usize> {
    let next_role = |index: usize| messages.get(index + 1).map(|next| next.role);
    messages.iter().enumerate().filter_map(move |(index, message)| match message.role {
        ChatRole::User => Some(index),
        ChatRole::Tool => matches!(next_role(index), None | Some(ChatRole::Assistant)).then_some(index),
        ChatRole::System | ChatRole::Assistant => None,
    })
}

/// Numbers below `count`, shuffled by seed (Fisher and Yates).
fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    let mut rng = SeededRng::new(seed, ORDER_SALT);
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last + 1));
    }
    order
}

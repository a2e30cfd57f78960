//! Tokens of texts by a tokenizer's file, after the run.

use std::path::Path;

#[cfg(feature = "tokenizer")]
use tokenizers::Tokenizer;

use super::llm_program::LlmProgram;
use weir_base::Nanos;
#[cfg(feature = "tokenizer")]
use weir_base::terminal_text::is_steering;
#[cfg(feature = "tokenizer")]
use weir_machine::input_file;
use weir_measure::Run;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::time_window::TimeWindow;

/// Tokenizer of a build without tokenizers: there is none.
#[cfg(not(feature = "tokenizer"))]
#[derive(Debug)]
enum Tokenizer {}

#[cfg(not(feature = "tokenizer"))]
impl Tokenizer {
    fn encode_fast(&self, _: String, _: bool) -> Result<Vec<u32>, String> {
        match *self {}
    }
}

/// Least number of words that prompts of a trace are made from.
const MIN_WORDS: usize = 16;

/// Counts tokens as a model does.
#[derive(Debug)]
pub struct TokenCounter(Tokenizer);

impl TokenCounter {
    /// Counter of a tokenizer's file, `tokenizer.json` of a model.
    ///
    /// # Errors
    /// One line, if it cannot be read.
    #[cfg(feature = "tokenizer")]
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let content = input_file::read(path).map_err(|error| format!("--tokenizer: cannot read '{name}': {error}"))?;
        let tokenizer = Tokenizer::from_bytes(&content).map_err(|error| {
            let why = error.to_string().replace(is_steering, " ");
            format!("--tokenizer: '{name}' is not a tokenizer: {why}; give the tokenizer.json of the model")
        })?;
        Ok(Self(tokenizer))
    }

    /// No counter, in a build without tokenizers.
    ///
    /// # Errors
    /// One line, always.
    #[cfg(not(feature = "tokenizer"))]
    pub fn open(_: &Path) -> Result<Self, String> {
        Err("--tokenizer: this build of weir has none; build it with the feature tokenizer".to_owned())
    }

    /// Adds the tokens of responses whose tokens the server has not reported to a run; those before `warmup` are none of it.
    ///
    /// # Errors
    /// One line, if a text cannot be tokenized.
    pub(super) fn count(
        &self,
        program: &LlmProgram,
        (objectives, warmup): (&GoodputObjectives, Nanos),
        run: &mut Run,
    ) -> Result<(), String> {
        let replies = program.take_uncounted();
        let Some(llm) = run.llm.as_mut().filter(|_| !replies.is_empty()) else { return Ok(()) };
        let mut counted: Vec<(LlmTimeline, Nanos)> = Vec::with_capacity(replies.len());
        let mut prompt = Vec::new();
        for reply in replies {
            prompt.clear();
            let has_prompt = reply.state.push_prompt_text(program.prompts(), &mut prompt);
            let input = if has_prompt { Some(self.tokens(&prompt)?) } else { None };
            let mut timeline = reply.timeline;
            timeline.record_usage(input, Some(self.tokens(&reply.text)?));
            counted.push((timeline, reply.done));
        }
        let until = warmup + Nanos::from_secs_f64(run.duration_s);
        llm.add_counted(&counted, objectives, &TimeWindow { from: warmup, until })
    }

    /// Those of these words that are one token each, alone and behind a space, so that N of them are N tokens.
    ///
    /// # Errors
    /// One line, if they are too few.
    pub(super) fn whole_words(&self, words: &[&'static str]) -> Result<Vec<&'static str>, String> {
        let mut whole = Vec::new();
        for word in words {
            if self.tokens(word.as_bytes())? == 1 && self.tokens(format!("{word} {word} {word}").as_bytes())? == 3 {
                whole.push(*word);
            }
        }
        if whole.len() < MIN_WORDS || self.tokens(whole.join(" ").as_bytes())? != whole.len() as u64 {
            return Err(format!(
                "--tokenizer: {} of {} words of prompts are one token each, fewer than {MIN_WORDS}; leave it out: then \
                 a prompt has one word for each token of the trace",
                whole.len(),
                words.len()
            ));
        }
        Ok(whole)
    }

    /// Number of tokens of the content of a JSON string.
    fn tokens(&self, content: &[u8]) -> Result<u64, String> {
        let quoted = [b"\"", content, b"\""].concat();
        // Content from a server may be an invalid string: then its bytes are counted, read as lossy UTF-8.
        let text: String =
            serde_json::from_slice(&quoted).unwrap_or_else(|_| String::from_utf8_lossy(content).into_owned());
        let tokens = self.0.encode_fast(text, false).map_err(|error| format!("--tokenizer: {error}"))?;
        Ok(tokens.len() as u64)
    }
}

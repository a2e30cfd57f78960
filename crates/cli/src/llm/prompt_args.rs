//! Flags of the prompts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use weir_base::units;
use weir_llm::{Dataset, DatasetKind, PromptOrder, PromptSource, RandomPrompts, ReplySource, TokenCount};
use weir_load::steps::ThinkTime;
use weir_machine::input_file;

const PROMPTS: &str = "Prompts";

/// Name of the data set of random words.
const RANDOM: &str = "random";
/// Default number of words of a random prompt.
const DEFAULT_INPUT: TokenCount = TokenCount::Normal { mean: 550, deviation: 150 };
/// Default number of tokens of the response to a random prompt.
const DEFAULT_OUTPUT: TokenCount = TokenCount::Normal { mean: 150, deviation: 10 };
/// Maximum number of words of a prefix, of prefixes, and of turns.
const MAX_COUNT: u64 = 1_000_000;

/// Prompts of the requests.
#[derive(Clone, Debug, Args)]
pub(super) struct PromptArgs {
    /// file of prompts or conversations (JSONL, JSON, text), or random words
    #[arg(long, value_name = "FILE|random", default_value = RANDOM, help_heading = PROMPTS)]
    dataset: PathBuf,
    /// tokens of a random prompt: 550, 550+-150 or 400..700 [default: 550+-150]
    #[arg(long, value_name = "TOKENS", value_parser = str::parse::<TokenCount>, help_heading = PROMPTS)]
    input_tokens: Option<TokenCount>,
    /// maximum tokens of a response [default: the file's; random: 150+-10]
    #[arg(long, value_name = "TOKENS", value_parser = str::parse::<TokenCount>, help_heading = PROMPTS)]
    output_tokens: Option<TokenCount>,
    /// random words that prompts share, in front of each [default: 0]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    prefix_tokens: Option<u64>,
    /// number of different prefixes [default: 1]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    prefixes: Option<u64>,
    /// conversations of the file in random order, by seed
    #[arg(long, help_heading = PROMPTS)]
    shuffle: bool,
    /// maximum turns of a conversation [default: all; random: 1]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    turns: Option<u64>,
    /// think time between turns [default: the file's, or 0s]
    #[arg(long, value_name = "TIME", value_parser = ThinkTime::parse, help_heading = PROMPTS)]
    think: Option<ThinkTime>,
    /// replies that the next turn repeats [default: dataset, where it has them]
    #[arg(long, value_name = "SOURCE", help_heading = PROMPTS)]
    replies: Option<ReplyArg>,
}

/// Replies that the next turn repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReplyArg {
    /// those of the file
    Dataset,
    /// those of the server
    Server,
}

/// Prompts, and how conversations go on.
#[derive(Debug)]
pub(super) struct LlmPrompts {
    pub(super) source: PromptSource,
    pub(super) replies: ReplySource,
    pub(super) think: ThinkTime,
    /// Whether tokens are counted after the run where the server does not.
    pub(super) counts_tokens: bool,
    /// Notes for a person.
    pub(super) notes: Vec<String>,
}

impl PromptArgs {
    /// Reads the prompts.
    ///
    /// # Errors
    /// One line with the invalid flag, or with the file's line.
    pub(super) fn into_prompts(self, seed: u64) -> Result<LlmPrompts, String> {
        let turns = count("turns", self.turns)?;
        let (prefix, prefixes) = (self.prefix_tokens.unwrap_or(0), count("prefixes", self.prefixes)?.unwrap_or(1));
        if prefix > MAX_COUNT {
            return Err(format!("--prefix-tokens: {prefix} is out of range; give 0 to {MAX_COUNT}"));
        }
        if self.prefixes.is_some() && prefix == 0 {
            return Err("--prefixes needs --prefix-tokens".to_owned());
        }
        let mut notes = Vec::new();
        let source = if self.dataset.as_os_str() == RANDOM {
            if self.shuffle {
                return Err("--shuffle is for a file; random words have no order".to_owned());
            }
            let input = self.input_tokens.unwrap_or(DEFAULT_INPUT);
            let turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(1);
            let output = Some(self.output_tokens.unwrap_or(DEFAULT_OUTPUT));
            PromptSource::of_random(RandomPrompts { input, turns, seed }).with_output(output)
        } else {
            if self.input_tokens.is_some() {
                return Err("--input-tokens is for --dataset random; the prompts of a file are as they are".to_owned());
            }
            let set = read(&self.dataset)?;
            if set.skipped() > 0 {
                notes.push(format!("{} conversations without a message of a user are left out", set.skipped()));
            }
            let unsent: Vec<&str> = set.unsent_members().collect();
            if !unsent.is_empty() {
                let names = unsent.join(", ");
                notes.push(format!(
                    "members of records that are not sent: {names}; --extra-body adds them to all bodies"
                ));
            }
            if set.kind() == DatasetKind::Batch && prefix > 0 {
                return Err("--prefix-tokens does not go with a batch, whose bodies are whole".to_owned());
            }
            let order = if self.shuffle { PromptOrder::Shuffled } else { PromptOrder::File };
            let source = PromptSource::of_dataset(set, order, seed).with_output(self.output_tokens);
            let max_turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(usize::MAX);
            source.with_max_turns(max_turns)
        };
        Ok(LlmPrompts {
            source: source.with_prefixes(prefix, prefixes),
            replies: match self.replies {
                Some(ReplyArg::Server) => ReplySource::Server,
                Some(ReplyArg::Dataset) | None => ReplySource::Dataset,
            },
            think: self.think.unwrap_or_default(),
            counts_tokens: false,
            notes,
        })
    }
}

fn count(flag: &str, given: Option<u64>) -> Result<Option<u64>, String> {
    match given {
        Some(count) if count == 0 || count > MAX_COUNT => {
            Err(format!("--{flag}: {count} is out of range; give 1 to {MAX_COUNT}"))
        }
        given => Ok(given),
    }
}

/// Data set of a file; images that it names are beside it.
fn read(path: &Path) -> Result<Dataset, String> {
    let name = path.display().to_string();
    let content = input_file::read(path).map_err(|error| {
        format!("cannot read the data set '{name}': {error}; write a file, or --dataset {RANDOM} for random words")
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read_image = |file: &str| {
        let path = folder.join(file);
        input_file::read(&path).map_err(|error| format!("cannot read the image '{}': {error}", path.display()))
    };
    Dataset::parse(&name, content, &mut read_image).map_err(|error| error.to_string())
}

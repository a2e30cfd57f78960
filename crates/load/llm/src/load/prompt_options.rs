//! Prompts of the requests of a load.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Dataset, DatasetKind, PromptOrder, PromptSource, RandomPrompts, ReplySource, TokenCount};
use weir_load::steps::ThinkTime;
use weir_machine::input_file;

/// Name of the data set of random words.
pub const RANDOM_WORDS: &str = "random";
/// Default number of words of a random prompt.
const DEFAULT_INPUT: TokenCount = TokenCount::Normal { mean: 550, deviation: 150 };
/// Default number of tokens of the response to a random prompt.
const DEFAULT_OUTPUT: TokenCount = TokenCount::Normal { mean: 150, deviation: 10 };
/// Maximum number of words of a prefix, of prefixes, and of turns.
const MAX_COUNT: u64 = 1_000_000;

/// Prompts of the requests of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptOptions {
    /// File of prompts or conversations; random words without one.
    pub dataset: Option<PathBuf>,
    /// Words of a random prompt; by default `550+-150`.
    pub input_tokens: Option<TokenCount>,
    /// Maximum tokens of a response; by default the file's, for random words `150+-10`.
    pub output_tokens: Option<TokenCount>,
    /// Random words in front of each prompt, which prompts share; by default 0.
    pub prefix_tokens: Option<u64>,
    /// Number of different prefixes; by default 1.
    pub prefixes: Option<u64>,
    /// Whether conversations of the file are in random order, by seed.
    pub shuffle: bool,
    /// Maximum turns of a conversation; by default all, for random words 1.
    pub turns: Option<u64>,
    /// Think time between turns; by default the file's, or none.
    pub think: Option<ThinkTime>,
    /// Whose replies the next turn repeats.
    pub replies: ReplySource,
}

/// Prompts, and how conversations go on.
#[derive(Debug)]
pub struct LlmPrompts {
    /// Prompts.
    pub source: PromptSource,
    /// Whose replies the next turn repeats.
    pub replies: ReplySource,
    /// Time between turns, where the data set has none.
    pub think: ThinkTime,
    /// Whether tokens are counted after the run where the server does not.
    pub counts_tokens: bool,
    /// Notes for a person.
    pub notes: Vec<String>,
}

impl PromptOptions {
    /// Reads the prompts.
    ///
    /// # Errors
    /// One line with the invalid flag, or with the file's line.
    pub fn prompts(&self, seed: u64) -> Result<LlmPrompts, String> {
        let turns = count("turns", self.turns)?;
        let (prefix, prefixes) = (self.prefix_tokens.unwrap_or(0), count("prefixes", self.prefixes)?.unwrap_or(1));
        if prefix > MAX_COUNT {
            return Err(format!("--prefix-tokens: {prefix} is out of range; give 0 to {MAX_COUNT}"));
        }
        if self.prefixes.is_some() && prefix == 0 {
            return Err("--prefixes needs --prefix-tokens".to_owned());
        }
        let mut notes = Vec::new();
        let source = if let Some(file) = &self.dataset {
            if self.input_tokens.is_some() {
                return Err("--input-tokens is for --dataset random; the prompts of a file are as they are".to_owned());
            }
            let set = read(file)?;
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
                return Err("--prefix-tokens cannot be used with a batch, whose bodies are whole".to_owned());
            }
            let order = if self.shuffle { PromptOrder::Shuffled } else { PromptOrder::File };
            let source = PromptSource::of_dataset(set, order, seed).with_output(self.output_tokens);
            let max_turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(usize::MAX);
            source.with_max_turns(max_turns)
        } else {
            if self.shuffle {
                return Err("--shuffle is for a file; random words have no order".to_owned());
            }
            let input = self.input_tokens.unwrap_or(DEFAULT_INPUT);
            let turns = turns.and_then(|turns| usize::try_from(turns).ok()).unwrap_or(1);
            let output = Some(self.output_tokens.unwrap_or(DEFAULT_OUTPUT));
            PromptSource::of_random(RandomPrompts { input, turns, seed }).with_output(output)
        };
        Ok(LlmPrompts {
            source: source.with_prefixes(prefix, prefixes),
            replies: self.replies,
            think: self.think.clone().unwrap_or_default(),
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
        format!(
            "cannot read the data set '{name}': {error}; write a file, or --dataset {RANDOM_WORDS} for random words"
        )
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut read_image = |file: &str| {
        let path = folder.join(file);
        input_file::read(&path).map_err(|error| format!("cannot read the image '{}': {error}", path.display()))
    };
    Dataset::parse(&name, content, &mut read_image).map_err(|error| error.to_string())
}

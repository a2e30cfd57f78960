//! Flags of the prompts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use weir_base::units;
use weir_llm::load::{PromptOptions, RANDOM_WORDS};
use weir_llm::{ReplySource, TokenCount};
use weir_load::steps::ThinkTime;

const PROMPTS: &str = "Prompts";

/// Prompts of the requests.
#[derive(Clone, Debug, Args)]
pub(super) struct PromptArgs {
    /// send prompts or conversations from FILE (JSONL, JSON, text), or random words
    #[arg(long, value_name = "FILE|random", default_value = RANDOM_WORDS, help_heading = PROMPTS)]
    dataset: PathBuf,
    /// make random prompts of 550, 550+-150 or 400..700 tokens [default: 550+-150]
    #[arg(long, value_name = "TOKENS", value_parser = str::parse::<TokenCount>, help_heading = PROMPTS)]
    input_tokens: Option<TokenCount>,
    /// limit the tokens of each response [default: the file's; random: 150+-10]
    #[arg(long, value_name = "TOKENS", value_parser = str::parse::<TokenCount>, help_heading = PROMPTS)]
    output_tokens: Option<TokenCount>,
    /// begin each prompt with N shared random words [default: 0]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    prefix_tokens: Option<u64>,
    /// use N different prefixes [default: 1]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    prefixes: Option<u64>,
    /// shuffle the file's conversations, by --seed
    #[arg(long, help_heading = PROMPTS)]
    shuffle: bool,
    /// play at most N turns of a conversation [default: all; random: 1]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = PROMPTS)]
    turns: Option<u64>,
    /// wait between turns (think time) [default: the file's, or 0s]
    #[arg(long, value_name = "TIME", value_parser = ThinkTime::parse, help_heading = PROMPTS)]
    think: Option<ThinkTime>,
    /// continue conversations with these replies [default: dataset, where it has them]
    #[arg(long, value_name = "SOURCE", help_heading = PROMPTS)]
    replies: Option<ReplyArg>,
}

/// Replies that the next turn repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReplyArg {
    /// replies in the file
    Dataset,
    /// replies of the server
    Server,
}

impl PromptArgs {
    /// Options of the prompts.
    pub(super) fn into_options(self) -> PromptOptions {
        PromptOptions {
            dataset: Some(self.dataset).filter(|file| file.as_os_str() != RANDOM_WORDS),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            prefix_tokens: self.prefix_tokens,
            prefixes: self.prefixes,
            shuffle: self.shuffle,
            turns: self.turns,
            think: self.think,
            replies: match self.replies {
                Some(ReplyArg::Server) => ReplySource::Server,
                Some(ReplyArg::Dataset) | None => ReplySource::Dataset,
            },
        }
    }
}

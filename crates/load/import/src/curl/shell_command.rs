//! Commands of a shell with their words.

use super::marks::MarkTable;

/// Command with its words.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) line: u32,
    pub(super) words: Vec<String>,
    /// Input of the command, if it is not the terminal.
    pub(super) input: Option<ShellInput>,
    /// Whether it reads what the command before it writes.
    pub(super) is_piped: bool,
    /// Number of the `<<` text that it reads, until its lines are known.
    pub(super) document: Option<usize>,
}

/// Standard input of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShellInput {
    /// Text of the script itself.
    Text(String),
    /// Content of a file.
    File(String),
    /// Output of a command, which is not known.
    Output(String),
}

/// Commands of a text, and the expressions in their words.
#[derive(Debug)]
pub(super) struct ShellScript {
    pub(super) commands: Vec<ShellCommand>,
    pub(super) marks: MarkTable,
}

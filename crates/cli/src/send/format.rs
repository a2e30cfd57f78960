//! Output format of `weir send` and its subcommands.

use clap::ValueEnum;

/// Format of the output on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SendFormat {
    Text,
    Json,
}

//! `weir gate check` and `weir gate diff`: configurations without a gateway.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::config_source::{ConfigSource, summary};
use super::{ConfigErrors, exit};
use weir_command::Messages;
use weir_gate::config::{self, Config};
use weir_gate::{self as gate, GateError};
use weir_resilience::policy::Policy;

/// Commands about configuration files.
#[derive(Debug, Subcommand)]
pub(super) enum FileCommand {
    /// Validate a configuration; on errors, print all and exit with 2
    Check(CheckArgs),
    /// Show what a reload would change
    Diff(DiffArgs),
}

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(super) struct CheckArgs {
    /// configuration (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub(super) struct DiffArgs {
    /// configuration in use
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// configuration that would replace it
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  weir gate check gate.toml
  weir gate check /etc/weir/gate.toml && echo valid";

const DIFF_EXAMPLES: &str = "\
Examples:
  weir gate diff /etc/weir/gate.toml gate.toml
  weir gate diff old.toml new.toml && cp new.toml old.toml";

impl FileCommand {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, ConfigErrors> {
        let text = match self {
            Self::Check(CheckArgs { file }) => {
                format!("{}: {}: valid\n", file.display(), summary(&read(file, messages)?))
            }
            Self::Diff(DiffArgs { old, new }) => {
                let changes = config::differences(&read(old, messages)?, &read(new, messages)?);
                match changes.as_slice() {
                    [] => "no changes\n".to_owned(),
                    changes => changes.iter().map(|change| format!("{change}\n")).collect(),
                }
            }
        };
        let written = io::stdout().write_all(text.as_bytes());
        written.map(|()| exit::OK).map_err(|error| vec![format!("cannot write to stdout: {error}")])
    }
}

/// A valid configuration. Its warnings are logged.
fn read(path: &Path, messages: &Messages) -> Result<Config, ConfigErrors> {
    let source = ConfigSource::of_file(path.to_owned());
    let config = source.load(Policy::default())?;
    for warning in &config.warnings {
        messages.note(&warning.with_file(&source.name()));
    }
    gate::check(&config).map_err(|error| match error {
        GateError::Config(why) => vec![format!("{}: {why}", source.name())],
        other => vec![other.to_string()],
    })?;
    Ok(config)
}

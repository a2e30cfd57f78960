//! `weir import`: files of other tools become scenarios.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use weir_import::{Import, ImportKind, ImportSettings, count_omissions};

use weir_command::Messages;
use weir_command::exit;
use weir_scenario_files::{ImportFormat, ImportInput, ImportOutput};

const EXAMPLES: &str = "Examples:\n  weir import shop.postman_collection.json dev.postman_environment.json -o shop.hurl\n  \
    weir import openapi.yaml --only pets --all -o pets.hurl\n  \
    weir import request.txt --from curl --to json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// collections, recordings, API descriptions, environments, folders of Bruno; - is stdin
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    files: Vec<PathBuf>,
    /// write the scenario to FILE, mix and variables beside it [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// read the files as this kind [default: detected from the content]
    #[arg(long, value_name = "KIND", value_enum)]
    from: Option<FromKind>,
    /// write the scenario in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ToFormat::Hurl)]
    to: ToFormat,
    /// import only requests with this tag, folder, name, path or host; repeatable
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// include operations that change data, and static files
    #[arg(long)]
    all: bool,
    /// keep recorded values instead of capturing them from responses
    #[arg(long)]
    no_correlate: bool,
    /// overwrite an existing scenario
    #[arg(long)]
    force: bool,
    /// seed made-up values
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Kind of files, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FromKind {
    Curl,
    Har,
    Postman,
    Openapi,
    Http,
    Jmx,
    Bruno,
}

/// Format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToFormat {
    Hurl,
    Curl,
    Json,
}

impl ToFormat {
    fn format(self) -> ImportFormat {
        match self {
            Self::Hurl => ImportFormat::Hurl,
            Self::Curl => ImportFormat::Curl,
            Self::Json => ImportFormat::Json,
        }
    }
}

impl FromKind {
    fn kind(self) -> ImportKind {
        match self {
            Self::Curl => ImportKind::Curl,
            Self::Har => ImportKind::Har,
            Self::Postman => ImportKind::Postman,
            Self::Openapi => ImportKind::OpenApi,
            Self::Http => ImportKind::Http,
            Self::Jmx => ImportKind::Jmx,
            Self::Bruno => ImportKind::Bruno,
        }
    }
}

pub(super) fn run(asked: &ImportArgs, messages: &Messages) -> Result<u8, String> {
    let settings =
        ImportSettings { only: asked.only.clone(), all: asked.all, correlate: !asked.no_correlate, seed: asked.seed };
    let mut input = ImportInput::read(&asked.files, asked.from.map(FromKind::kind))?;
    let import = input.import(&settings)?;
    if import.active_steps() == 0 && asked.to == ToFormat::Hurl {
        let hint = if asked.only.is_empty() { "" } else { "; --only matches none" };
        messages.note(&format!("warning: no requests are left{hint}"));
    }
    let output = ImportOutput {
        path: asked.out.as_deref(),
        format: asked.to.format(),
        input: &input,
        keeps_values: true,
        overwrites: asked.force,
        load_flags: "",
    };
    let written = output.write(import, messages)?;
    report(&written, messages);
    Ok(exit::OK)
}

/// Lists what is left out, with its places.
fn report(import: &Import, messages: &Messages) {
    if import.omissions.is_empty() {
        return;
    }
    messages.note(&format!("left out: {}", count_omissions(&import.omissions)));
    for omission in &import.omissions {
        messages.note(&format!("  {omission}"));
    }
}

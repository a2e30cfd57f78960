//! `weir import`: files of other tools become scenarios.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use weir_import::{Import, ImportKind, ImportSettings, OmissionKind, count_omissions};

use weir_command::Messages;
use weir_command::exit;
use weir_load::program::is_collection;
use weir_scenario_files::{ImportFormat, ImportInput, ImportOutput, write_script};

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
    /// write the scenario in this format [default: hurl; js for FILE.js]
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Option<ToFormat>,
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
    Js,
}

impl ImportArgs {
    /// Format that is written; none for a script.
    fn format(&self) -> Option<ImportFormat> {
        let is_script =
            self.out.as_deref().is_some_and(|out| out.extension().is_some_and(|extension| extension == "js"));
        match self.to {
            Some(ToFormat::Js) => None,
            None if is_script => None,
            Some(ToFormat::Curl) => Some(ImportFormat::Curl),
            Some(ToFormat::Json) => Some(ImportFormat::Json),
            Some(ToFormat::Hurl) | None => Some(ImportFormat::Hurl),
        }
    }

    /// Writes a collection of Postman with its scripts.
    fn write_script(&self, input: &ImportInput, messages: &Messages) -> Result<u8, String> {
        let given = [("--only", !self.only.is_empty()), ("--all", self.all), ("--no-correlate", self.no_correlate)];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("{flag} cannot be used with a script; it has the whole collection"));
        }
        write_script(self.out.as_deref(), &input.script()?, self.force, messages)?;
        Ok(exit::OK)
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
    let Some(format) = asked.format() else { return asked.write_script(&input, messages) };
    let has_scripts = format == ImportFormat::Hurl && asked.files.iter().any(|path| is_collection(path));
    let import = input.import(&settings)?;
    if import.active_steps() == 0 && format == ImportFormat::Hurl {
        let hint = if asked.only.is_empty() { "" } else { "; --only matches none" };
        messages.note(&format!("warning: no requests are left{hint}"));
    }
    let output = ImportOutput {
        path: asked.out.as_deref(),
        format,
        input: &input,
        keeps_values: true,
        overwrites: asked.force,
        load_flags: "",
    };
    let written = output.write(import, messages)?;
    report(&written, messages);
    let has_lost = written.omissions.iter().any(|omission| omission.kind == OmissionKind::Script);
    if has_scripts && has_lost {
        messages
            .note("scripts are kept by -o FILE.js, and played by weir run and weir load -s of the collection itself");
    }
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

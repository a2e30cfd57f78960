//! `weir study`: arguments -> a study that is run, printed and saved.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::agent_args::AgentArgs;
use super::load;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_command::self_command;
use weir_command::stdout::print;
use weir_machine as machine;
use weir_scripts::{PythonHost, StudyScripts};
use weir_session::output::OutputFile;
use weir_study::file::{LoadSyntax, ParsedLoad};
use weir_study::findings::Findings;
use weir_study::{self as study, StudyFile, StudyOptions, StudyProgressView, text};

const EXAMPLES: &str = "Examples:
  weir study new study.toml
  weir study study.toml --quick --out trial";

const NEW_EXAMPLES: &str = "Examples:
  weir study new
  weir study new experiments/threads.toml";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(super) struct StudyArgs {
    #[command(subcommand)]
    command: Option<StudyCommand>,
    /// study file, or a folder that has study.toml
    #[arg(value_name = "FILE|FOLDER", required = true)]
    file: Option<PathBuf>,
    /// keep results in this folder, and resume from them [default: results beside FILE, or results-quick]
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[arg(long, help = "run a short trial: the settings of [quick], or few repeats of 1s")]
    quick: bool,
    /// validate only: print errors or the plan
    #[arg(long)]
    check: bool,
    /// measure everything again, ignoring saved results
    #[arg(long = "rerun")]
    remeasure: bool,
    /// exit with 3 if a measurement is not trusted
    #[arg(long)]
    strict: bool,
    /// print the findings in this format
    #[arg(short, long, value_enum, default_value_t = StudyFormat::Text)]
    format: StudyFormat,
    #[command(flatten)]
    agent_args: AgentArgs,
    /// write a second copy of the HTML report to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
    /// Write a working study file to start from
    #[command(after_help = NEW_EXAMPLES)]
    New {
        /// file to write; an existing one is not overwritten
        #[arg(value_name = "FILE", default_value = "study.toml")]
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StudyFormat {
    Text,
    Json,
}

/// Errors, one line each.
type StudyErrors = Vec<String>;

pub(super) fn run(asked: &StudyArgs, args: &[OsString], messages: &Messages, host: Option<&dyn PythonHost>) -> u8 {
    let result = match (&asked.command, &asked.file) {
        (Some(StudyCommand::New { file }), _) => write_example(file, messages),
        (None, Some(file)) => run_study(asked, file, (args, host), messages),
        (None, None) => Err(vec!["name the file of a study, or write one with 'weir study new'".to_owned()]),
    };
    result.unwrap_or_else(|errors| {
        errors.iter().for_each(|error| messages.error(error));
        exit::USAGE
    })
}

/// Entry point of the supervisor process that [`study`] starts for each program.
pub(super) fn guard(messages: &Messages) -> u8 {
    match machine::supervisor::run() {
        Ok(()) => exit::OK,
        Err(error) => {
            messages.error(&format!("internal command of 'weir study': {error}"));
            exit::USAGE
        }
    }
}

fn write_example(path: &Path, messages: &Messages) -> Result<u8, StudyErrors> {
    StudyFile::new(path).create().map_err(|why| vec![why])?;
    messages.note(&format!("wrote {0}; run it with: weir study {0}", path.display()));
    Ok(exit::OK)
}

fn run_study(
    asked: &StudyArgs,
    named: &Path,
    (args, host): (&[OsString], Option<&dyn PythonHost>),
    messages: &Messages,
) -> Result<u8, StudyErrors> {
    let file = StudyFile::new(named);
    let flags = load::flags();
    let scripts = StudyScripts::new(args, host);
    let parse = |args: &[String], folder: &Path| {
        load::parse(args, folder, &scripts).map(|(options, warnings)| ParsedLoad { options, warnings })
    };
    let words = LoadSyntax { flags: &flags, parse: &parse };
    let (definition, warnings) = file.read(&words, asked.quick)?;
    warnings.iter().for_each(|warning| messages.note(warning));
    if asked.check {
        let line = format!("{}: {}: fine", file.path().display(), definition.summary());
        return print_line(&line).map(|()| exit::OK);
    }
    let html = OutputFile::open_page(asked.html.as_deref()).map_err(|why| vec![why])?;
    let interrupt = Interrupt::install().map_err(|error| vec![format!("cannot listen for Ctrl-C: {error}")])?;
    let out = asked.out.clone().unwrap_or_else(|| file.default_folder(asked.quick));
    let launcher = self_command(args);
    let agents = asked.agent_args.agent_spec(args, None).map_err(|why| vec![why])?;
    let to_run = StudyOptions {
        definition: &definition,
        load_syntax: &words,
        launcher: &launcher,
        agents: agents.as_ref(),
        script_report: &|script, report| scripts.add_report(script, report),
        out: &out,
        remeasure: asked.remeasure,
    };
    let mut view = StudyProgressView::new(messages, &definition);
    let outcome =
        study::run(&to_run, &|| !interrupt.is_requested(), &mut |news| view.show(news)).map_err(|why| vec![why])?;
    view.finish();
    scripts.end().map_err(|why| vec![why])?;
    let findings = Findings::new(&definition, &outcome);
    let written = study::write_report(&findings).map_err(|why| vec![why])?;
    if let Some(output) = html {
        output.write(&written.html).map_err(|why| vec![why])?;
    }
    let report = format!("{} (and report.md)", out.join("report.html").display());
    match asked.format {
        StudyFormat::Text => print_line(text::render(&findings, &report).trim_end())?,
        StudyFormat::Json => print_line(&format!("{:#}", text::json(&findings)))?,
    }
    if let (Some(why), false) = (outcome.lost_agent(), outcome.interrupted) {
        messages.error(why);
    }
    Ok(outcome.exit_code(asked.strict))
}

fn print_line(text: &str) -> Result<(), StudyErrors> {
    print(&format!("{text}\n"), false).map_err(|why| vec![why])
}

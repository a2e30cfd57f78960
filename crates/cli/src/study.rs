//! `weir study`: arguments -> a study that is run, printed and saved.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::agent_args::AgentArgs;
use super::load;
use super::load::StudyScripts;
use super::python_host::PythonHost;
use super::self_exec::self_command;
use weir_base::Nanos;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_machine as machine;
use weir_machine::dashboard::Dashboard;
use weir_machine::input_file;
use weir_session::output::OutputFile;
use weir_study::definition::Definition;
use weir_study::file::{self, EXAMPLE, LoadSyntax, ParsedLoad};
use weir_study::findings::Findings;
use weir_study::measurement::Measurement;
use weir_study::{self as study, StudyEvent, StudyOptions, StudyOutcome, StudyProgress, text};

const EXAMPLES: &str = "Examples:
  weir study new study.toml
  weir study study.toml --quick --out trial

Reference: docs/study.md";

const NEW_EXAMPLES: &str = "Examples:
  weir study new
  weir study new experiments/threads.toml

Reference: docs/study.md";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(super) struct StudyArgs {
    #[command(subcommand)]
    command: Option<StudyCommand>,
    /// study file, or a folder that has study.toml
    #[arg(value_name = "FILE|FOLDER", required = true)]
    file: Option<PathBuf>,
    /// results folder, resumed [default: results beside FILE, or results-quick]
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[arg(long, help = "short trial run: applies [quick], or few repeats of 1s")]
    quick: bool,
    /// validation only: prints errors or the plan
    #[arg(long)]
    check: bool,
    /// re-measurement of everything, ignoring saved results
    #[arg(long = "rerun")]
    remeasure: bool,
    /// exit code 3 if a measurement is not trusted
    #[arg(long)]
    strict: bool,
    /// format of the findings on stdout
    #[arg(short, long, value_enum, default_value_t = StudyFormat::Text)]
    format: StudyFormat,
    #[command(flatten)]
    agent_args: AgentArgs,
    /// second copy of the HTML report
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
    let wrong = |error: io::Error| vec![format!("cannot write {}: {error}", path.display())];
    let mut file = fs::File::create_new(path).map_err(wrong)?;
    file.write_all(EXAMPLE.as_bytes()).map_err(wrong)?;
    messages.note(&format!("wrote {0}; run it with: weir study {0}", path.display()));
    Ok(exit::OK)
}

fn run_study(
    asked: &StudyArgs,
    named: &Path,
    (args, host): (&[OsString], Option<&dyn PythonHost>),
    messages: &Messages,
) -> Result<u8, StudyErrors> {
    let path = if named.is_dir() { named.join("study.toml") } else { named.to_owned() };
    let flags = load::flags();
    let scripts = StudyScripts::new(args, host);
    let parse = |args: &[String], folder: &Path| {
        load::parse(args, folder, &scripts).map(|(options, warnings)| ParsedLoad { options, warnings })
    };
    let words = LoadSyntax { flags: &flags, parse: &parse };
    let definition = read(&path, &words, asked.quick, messages)?;
    if asked.check {
        let line = format!("{}: {}: fine", path.display(), summary(&definition));
        return print(&line).map(|()| exit::OK);
    }
    let html = OutputFile::open_page(asked.html.as_deref()).map_err(|why| vec![why])?;
    let interrupt = Interrupt::install().map_err(|error| vec![format!("cannot listen for Ctrl-C: {error}")])?;
    let out = asked.out.clone().unwrap_or_else(|| default_folder(&path, asked.quick));
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
        StudyFormat::Text => print(text::render(&findings, &report).trim_end())?,
        StudyFormat::Json => print(&format!("{:#}", text::json(&findings)))?,
    }
    if let (Some(why), false) = (lost_agent(&outcome), outcome.interrupted) {
        messages.error(why);
    }
    Ok(exit_code(&outcome, asked.strict))
}

/// Results folder of a study file. Those of a trial run are apart from results that are kept: in the `target` of a
/// Cargo workspace, if the study is in one.
fn default_folder(file: &Path, is_quick: bool) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new(""));
    if !is_quick {
        return folder.join("results");
    }
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let target = absolute.ancestors().map(|above| above.join("target")).find(|it| it.join("CACHEDIR.TAG").is_file());
    match (target, absolute.file_name()) {
        (Some(target), Some(name)) => target.join("studies").join("quick").join(name),
        _ => folder.join("results-quick"),
    }
}

fn exit_code(outcome: &StudyOutcome, strict: bool) -> u8 {
    if outcome.interrupted {
        return exit::INTERRUPTED;
    }
    if lost_agent(outcome).is_some() {
        return exit::UNTRUSTED;
    }
    let mut measured = outcome.measurements.iter().filter(|cell| cell.is_measured()).peekable();
    if measured.peek().is_none() {
        // Without any measurement there is no result.
        return exit::USAGE;
    }
    if strict && !measured.all(Measurement::is_trusted) { exit::UNTRUSTED } else { exit::OK }
}

/// First agent that was lost, with the reason.
fn lost_agent(outcome: &StudyOutcome) -> Option<&str> {
    outcome.measurements.iter().find_map(|cell| cell.lost_agent.as_deref())
}

fn read(path: &Path, words: &LoadSyntax<'_>, quick: bool, messages: &Messages) -> Result<Definition, StudyErrors> {
    let shown = path.display();
    let text = input_file::read_to_string(path).map_err(|error| vec![format!("cannot read {shown}: {error}")])?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let named = |problems: Vec<weir_document::Diagnostic>| -> StudyErrors {
        problems.iter().map(|problem| format!("{shown}:{problem}")).collect()
    };
    let (definition, warnings) = file::parse(&text, folder, words, quick).map_err(named)?;
    named(warnings).iter().for_each(|warning| messages.note(warning));
    Ok(definition)
}

/// Size of a study: `2 variants x 3 points x 10 rounds: 60 measurements`.
fn summary(definition: &Definition) -> String {
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let (variants, points, repeats) =
        (definition.variants.len(), definition.points().len(), definition.repeats as usize);
    let all = count(variants * points * repeats, "measurement");
    let parts = [count(variants, "variant"), count(points, "point"), count(repeats, "round")];
    format!("{}: {all}", parts.join(" x "))
}

/// Prints to stdout. A closed pipe (`| head`) is not an error.
fn print(text: &str) -> Result<(), StudyErrors> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(vec![format!("cannot write to stdout: {error}")])
        }
        _ => Ok(()),
    }
}

/// Progress of a study: a bar on a terminal, a line per measurement elsewhere.
struct StudyProgressView<'a> {
    messages: &'a Messages,
    definition: &'a Definition,
    board: Option<Dashboard>,
}

impl<'a> StudyProgressView<'a> {
    fn new(messages: &'a Messages, definition: &'a Definition) -> Self {
        let board = (!messages.is_quiet()).then(Dashboard::new).filter(Dashboard::is_shown);
        Self { messages, definition, board }
    }

    fn show(&mut self, news: &StudyEvent<'_>) {
        match (news, &mut self.board) {
            (StudyEvent::SettingUp(name), _) => self.messages.note(&format!("setting up {name}")),
            (StudyEvent::Started(place, far), Some(board)) => {
                let name = &self.definition.variants[place.variant].program.name;
                board.update(far.done as u64, far.total as u64, &format!("{}  {name}", shown(far)), &[]);
            }
            (StudyEvent::Finished(cell, far), Some(board)) => {
                if let Some(failure) = &cell.failure {
                    board.print_above(|| self.messages.note(&format!("{}: {}", cell.variant, failure.reason)));
                }
                board.update(far.done as u64, far.total as u64, &shown(far), &[]);
            }
            (StudyEvent::Started(..), None) => {}
            (StudyEvent::Finished(cell, far), None) => {
                let point = study::point_name(&cell.point);
                let reason = cell.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.reason));
                self.messages.note(&format!("{}  {} at {point}{reason}", shown(far), cell.variant));
            }
        }
    }

    fn finish(self) {
        if let Some(board) = self.board {
            board.finish();
        }
    }
}

fn shown(far: &StudyProgress) -> String {
    let left = far.remaining.filter(|left| *left > Nanos::ZERO).map(|left| {
        let seconds = std::time::Duration::from_secs(left.0.div_ceil(Nanos::SECOND.0));
        format!(", about {seconds:?} left")
    });
    format!("{}/{}{}", far.done, far.total, left.unwrap_or_default())
}

//! Command line behind the page of `weir ui`: options, previews, saved runs and reports.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::load_form;
use crate::form_args;
use crate::load;
use weir_history::{NO_LABEL, RunFilter, RunLibrary, run_row, trend_reports};
use weir_machine::clock;
use weir_report::page::shell_quoted;
use weir_web::{DocumentRequest, RunCommand, RunForm, RunQuery, UiBackend, mix_text};

/// Maximum number of runs in a list.
const MAX_LISTED_RUNS: u64 = 500;

/// Backend of the page that uses the parsers and stores of the command line.
#[derive(Debug)]
pub(super) struct UiCommands {
    library: RunLibrary,
    /// Program and arguments before the subcommand.
    program: Vec<OsString>,
}

impl UiCommands {
    pub(super) fn new(library: RunLibrary, program: Vec<OsString>) -> Self {
        Self { library, program }
    }

    /// Arguments that save a run where the page finds it.
    fn saving(&self, form: &RunForm) -> Vec<String> {
        match &self.library {
            RunLibrary::Store(path) => {
                let label = (!form.label.is_empty()).then(|| format!("--label={}", form.label));
                [format!("--save={}", path.display())].into_iter().chain(label).collect()
            }
            RunLibrary::Folder(folder, _) => {
                let now = chrono::DateTime::from_timestamp_millis((clock::unix_s() * 1e3) as i64).unwrap_or_default();
                let now = now.format("%Y%m%d-%H%M%S%.3f");
                let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
                let label: String = form.label.chars().map(|c| if is_plain(c) { c } else { '-' }).take(60).collect();
                let name =
                    if label.trim_matches(['-', '.']).is_empty() { NO_LABEL } else { label.trim_start_matches('.') };
                vec![format!("--out={}", folder.join(format!("{name}-{now}.json")).display())]
            }
        }
    }
}

impl UiBackend for UiCommands {
    fn options(&self) -> Value {
        load_form::groups()
    }

    fn preview(&self, form: &RunForm) -> Result<Value, String> {
        let args = load_form::arguments(form)?;
        let problem = load::check(&args).err();
        let (toml, request, why_not) = match mix_text(form) {
            Ok(mix) => (Some(mix.toml), mix.request, None),
            Err(why) => (None, None, Some(why)),
        };
        Ok(json!({
            "command": command_line(&args),
            "problem": problem,
            "toml": toml,
            "request": request,
            "no_toml": why_not,
        }))
    }

    fn command(&self, form: &RunForm) -> Result<RunCommand, String> {
        let args = load_form::arguments(form)?;
        let mask = load::check(&args)?;
        let added = ["load", "--log-format=json", "--web=127.0.0.1:0", "--until-stdin-ends"];
        let own = added.into_iter().map(str::to_owned).chain(self.saving(form)).map(OsString::from);
        let (hidden, environment) = form_args::hidden(&args);
        let words = self.program.iter().cloned().chain(own).chain(hidden).collect();
        Ok(RunCommand { words, environment, shown: command_line(&mask.command(&args)) })
    }

    fn form_of(&self, run: i64) -> Result<Value, String> {
        let id = run;
        let run = self.library.run(id)?;
        let [_, name, args @ ..] = run.manifest.command.as_slice() else {
            return Err("the run does not record its command".to_owned());
        };
        if name != "load" {
            return Err(format!("the run was made by {}, not by weir load", run.manifest.command.join(" ")));
        }
        let mut form = load_form::form_of(args)?;
        if form.label.is_empty() {
            form.label = self.library.label(id);
        }
        Ok(json!({ "url": form.url, "options": form.options, "label": form.label }))
    }

    fn runs(&self, query: &RunQuery) -> Result<Value, String> {
        let mut runs = self.library.runs(&filter_of(query, Some(MAX_LISTED_RUNS)))?;
        runs.reverse();
        Ok(json!({ "runs": runs.iter().map(run_row).collect::<Vec<_>>(), "max": MAX_LISTED_RUNS }))
    }

    fn trends(&self, query: &RunQuery) -> Result<Value, String> {
        let runs = self.library.runs(&filter_of(query, None))?;
        Ok(json!({ "groups": trend_reports(runs) }))
    }

    fn document(&self, request: &DocumentRequest) -> Result<String, String> {
        self.library.document(&request.runs, request.force)
    }

    fn saved_since(&self, started_unix_s: f64) -> Option<i64> {
        // The clock of the start is read before the process begins.
        self.library.newest_since(started_unix_s)
    }

    fn uploads(&self) -> PathBuf {
        self.library.uploads()
    }
}

fn filter_of(query: &RunQuery, limit: Option<u64>) -> RunFilter {
    RunFilter { plan: query.target.clone(), label: query.label.clone(), commit: query.commit.clone(), limit }
}

/// Command line as a person writes it: `--name value`.
fn command_line(args: &[String]) -> String {
    let word = |arg: &String| match arg.strip_prefix("--").and_then(|_| arg.split_once('=')) {
        Some((name, value)) if needs_equals(name, value) => format!("{name}={}", shell_quoted(value)),
        Some((name, value)) => format!("{name} {}", shell_quoted(value)),
        None => shell_quoted(arg),
    };
    ["weir load".to_owned()].into_iter().chain(args.iter().map(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a value cannot follow its option as a word of its own.
fn needs_equals(name: &str, value: &str) -> bool {
    value.starts_with('-') || load_form::is_optional_value(name)
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let args = ["http://h/a?b=c&d", "--rate=5", "--slo=p99<1s", "--header=-A: b", "--http2=only", "--spin"];
        let args: Vec<String> = args.map(str::to_owned).to_vec();
        assert_eq!(
            command_line(&args),
            "weir load 'http://h/a?b=c&d' --rate 5 --slo 'p99<1s' --header='-A: b' --http2=only --spin"
        );
    }
}

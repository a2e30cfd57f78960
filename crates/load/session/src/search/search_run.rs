//! One search for capacity, with its progress, and what is made of its result.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::search_feed::SearchFeed;
use crate::exit_code::not_begun;
use crate::output::OutputFile;
use weir_capacity::{self as capacity, CapacityError, CapacityEvent, CapacityOptions};
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_measure::LoadModel;
use weir_measure::capacity::report::{Bottleneck, CapacityReport};
use weir_measure::recovery::RecoveryVerdict;
use weir_report::capacity as report;
use weir_report::page::render;
use weir_terminal::progress_bar::{Extent, ProgressBar};

/// Executes a search, with a progress bar, a line for each load level, and its outputs.
///
/// # Errors
/// When the search cannot start.
pub fn search(
    asked: &CapacityOptions,
    command: &[String],
    (messages, interrupt): (&Messages, &Interrupt),
    feed: &mut SearchFeed,
    on_script_report: &mut dyn FnMut(&str),
) -> Result<CapacityReport, CapacityError> {
    let mut bar: Option<(usize, ProgressBar)> = None;
    let found = capacity::find(asked, command, &mut |event| {
        if let CapacityEvent::StepProgress { load, progress, .. } | CapacityEvent::RecoveryProgress { load, progress } =
            event
        {
            for note in feed.update(*load, progress) {
                match &mut bar {
                    Some((_, bar)) => bar.print_above(|| messages.note(&note)),
                    None => messages.note(&note),
                }
            }
        }
        match event {
            CapacityEvent::StepProgress { step, progress, .. } if !messages.is_quiet() => {
                if bar.as_ref().is_none_or(|(number, _)| number != step) {
                    let seconds = asked.step_length.max_s + asked.warmup_s;
                    finish(&mut bar);
                    let until = Duration::from_secs(seconds).into();
                    bar = Some((*step, ProgressBar::new(Extent { until, requests: None })));
                }
                if let Some(line) = bar.as_mut().and_then(|(_, bar)| bar.update(progress)) {
                    messages.note(&line);
                }
            }
            CapacityEvent::StepProgress { .. } | CapacityEvent::RecoveryProgress { .. } => {}
            CapacityEvent::RecoveryPhase(phase, load) => {
                finish(&mut bar);
                let (name, load) = (report::recovery::phase_name(*phase), report::load(LoadModel::Open, *load));
                messages.note(&format!("recovery: {name} at {load}"));
            }
            CapacityEvent::ScriptReport(report) => on_script_report(report),
            CapacityEvent::StepDone(tried) => {
                finish(&mut bar);
                messages.note(&report::step(asked.model, tried));
            }
        }
        !interrupt.is_requested()
    });
    finish(&mut bar);
    found
}

fn finish(bar: &mut Option<(usize, ProgressBar)>) {
    if let Some((_, bar)) = bar.take() {
        bar.finish();
    }
}

/// Form and judgement of a search's result.
#[derive(Clone, Copy, Debug)]
pub struct ResultRules {
    /// Whether the report is JSON.
    pub as_json: bool,
    /// Whether a search fails whose limit is weir itself.
    pub strict: bool,
}

/// Delivers, prints and writes the result of a search, or why there is none; returns the exit code.
///
/// # Errors
/// One line: a file cannot be written, or the input is why there is no result.
pub fn conclude(
    found: Result<CapacityReport, CapacityError>,
    (feed, outputs): (SearchFeed, SearchOutputs),
    ResultRules { as_json, strict }: ResultRules,
    messages: &Messages,
) -> Result<u8, String> {
    match found {
        Ok(answer) => {
            let delivered = feed.finish(Ok(&answer), messages);
            outputs.write(&answer, as_json, messages)?;
            Ok(exit_code(&answer, strict).max(delivered))
        }
        Err(why) => {
            feed.finish(Err(&why.to_string()), messages);
            failure(why, messages)
        }
    }
}

/// Exit code of a search without a result.
///
/// # Errors
/// One line, if the input is the reason.
pub fn failure(why: CapacityError, messages: &Messages) -> Result<u8, String> {
    match why {
        CapacityError::Load(why) if why.is_interrupt() => not_begun(&why, messages),
        CapacityError::AgentLost(why) => {
            messages.error(&why);
            Ok(exit::UNTRUSTED)
        }
        why => Err(why.to_string()),
    }
}

/// Exit code of a result.
fn exit_code(answer: &CapacityReport, strict: bool) -> u8 {
    match answer {
        answer if answer.interrupted => exit::INTERRUPTED,
        answer if answer.lost_agent.is_some() => exit::UNTRUSTED,
        answer if strict && answer.limited_by == Bottleneck::Generator => exit::UNTRUSTED,
        answer if strict && answer.recovery.as_ref().is_some_and(|tested| !tested.doubts.is_empty()) => exit::UNTRUSTED,
        CapacityReport { recovery: Some(tested), .. } => match tested.verdict {
            RecoveryVerdict::Recovered | RecoveryVerdict::Undisturbed => exit::OK,
            RecoveryVerdict::Degraded | RecoveryVerdict::Metastable | RecoveryVerdict::Inconclusive => exit::OBJECTIVE,
        },
        answer if answer.passes.is_none() => exit::OBJECTIVE,
        _ => exit::OK,
    }
}

/// Paths of a search's output files.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchPaths<'p> {
    /// Result.
    pub out: Option<&'p Path>,
    /// HTML report.
    pub html: Option<&'p Path>,
    /// Lines while the search goes on.
    pub jsonl: Option<&'p Path>,
}

/// Output files of a search.
#[derive(Debug)]
pub struct SearchOutputs {
    out: Option<OutputFile>,
    html: Option<OutputFile>,
    /// Lines while the search goes on, which something else writes.
    jsonl: Option<OutputFile>,
}

impl SearchOutputs {
    /// Opens the files.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    pub fn open(SearchPaths { out, html, jsonl }: SearchPaths<'_>, args: &[OsString]) -> Result<Self, String> {
        let all =
            Self { out: OutputFile::open(out)?, html: OutputFile::open_page(html)?, jsonl: OutputFile::open(jsonl)? };
        let by_flag = [("--out", all.out.as_ref()), ("--html", all.html.as_ref()), ("--out-jsonl", all.jsonl.as_ref())];
        OutputFile::ensure_distinct(&by_flag)?;
        for (flag, output) in by_flag {
            output.map_or(Ok(()), |output| output.ensure_not_argument(flag, args))?;
        }
        Ok(all)
    }

    /// Rejects outputs that were read as inputs; called when all are read, and nothing is written yet.
    ///
    /// # Errors
    /// One line with the flag.
    pub fn ensure_not_inputs(&self) -> Result<(), String> {
        let by_flag = [("--out", &self.out), ("--html", &self.html), ("--out-jsonl", &self.jsonl)];
        by_flag
            .into_iter()
            .try_for_each(|(flag, output)| output.as_ref().map_or(Ok(()), |output| output.ensure_not_read(flag)))
    }

    /// File of the lines while the search goes on.
    pub fn jsonl(&self) -> Option<&OutputFile> {
        self.jsonl.as_ref()
    }

    /// Prints the report and writes the files.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    fn write(self, answer: &CapacityReport, as_json: bool, messages: &Messages) -> Result<(), String> {
        let taken = [&self.out, &self.html, &self.jsonl].into_iter().flatten().any(OutputFile::is_stdout);
        if !(taken && messages.is_quiet()) {
            let text = if as_json { answer.to_json() } else { report::render(answer, colors() && !taken) };
            print(&text, taken)?;
        }
        if let Some(output) = self.out {
            output.write(&answer.to_json())?;
        }
        if let Some(output) = self.html {
            output.write(&render(&report::page::of_capacity(answer)))?;
        }
        if let Some(why) = &answer.lost_agent {
            messages.error(why);
        }
        Ok(())
    }
}

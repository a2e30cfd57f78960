//! The iteration itself, its messages and its exit code.

use std::sync::mpsc::{self, Receiver};
use std::thread;

use weir_base::failure::FailureKind;
use weir_load::grpc::{asks_for_schema, is_grpc_url};
use weir_load::setup;
use weir_load::steps::StepTrace;
use weir_load::{self as load, LoadPlan, Options};
use weir_measure::Run;
use weir_measure::end_reason::EndReason;

use super::json::TraceDocument;
use super::play_output::{PlayOutput, PlayTotals};
use super::text::{TraceText, split};
use crate::exit_code::not_begun;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_command::{Interrupt, exit_on_interrupt};

/// Counts and outcome from the printing thread.
struct Printed {
    totals: PlayTotals,
    /// Kind and origin of a transfer after which the iteration ended.
    unreachable: Option<(FailureKind, String)>,
    document: TraceDocument,
}

/// Plays the scenarios of the options once: one user, one iteration. Exit code 1 if a step failed, 2 if a service could
/// not be reached.
///
/// # Errors
/// One line, if the options are invalid or the service cannot be reached.
pub fn play(options: &Options, output: &PlayOutput, messages: &Messages) -> Result<u8, String> {
    let mut options = options.single_iteration(options.scenarios.clone());
    // So that a call is a step, which is printed.
    options.traces_requests |= is_grpc_url(&options.url);
    if asks_for_schema(&options) {
        exit_on_interrupt(messages).map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    }
    let mut plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    let Some(mix) = &plan.scenarios else {
        return Err("--once plays a scenario; name one with -s FILE, or a --check".to_owned());
    };
    mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let options = match setup::set_up(&options, &mut || !interrupt.is_requested()) {
        Ok(options) => options,
        Err(why) => return not_begun(&why, messages),
    };
    if plan.has_setup() {
        plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    }
    let names = options.scenarios.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ");
    let name = if names.is_empty() { plan.mask.shown(&options.url) } else { names };
    let played = play_plan(plan, &name, output, &interrupt, messages);
    if let Err(why) = setup::tear_down(&options, &mut || true) {
        messages.error(&why.to_string());
    }
    played.map(|played| played.map_or(exit::INTERRUPTED, |(_, code)| code))
}

/// Plays a load of one iteration; returns its result and exit code, none if it was interrupted before its start.
///
/// # Errors
/// One line, if the load cannot begin.
pub fn play_plan(
    mut plan: LoadPlan,
    name: &str,
    output: &PlayOutput,
    interrupt: &Interrupt,
    messages: &Messages,
) -> Result<Option<(Run, u8)>, String> {
    let (trace, steps) = mpsc::channel::<StepTrace>();
    plan.trace = Some(trace);
    let printing = {
        let output = PlayOutput { mask: plan.mask.clone().joined(&output.mask), ..output.clone() };
        thread::spawn(move || print_steps(&steps, &output))
    };
    let run = load::run(&plan, &[], &mut |_| !interrupt.is_requested(), None);
    drop(plan);
    let printed = printing.join().unwrap_or_else(|_| Err("the printing thread failed".to_owned()));
    let run = match run {
        Ok(run) => run,
        Err(why) => return not_begun(&why, messages).map(|_| None),
    };
    let printed = printed?;
    let totals = printed.totals;
    let is_ok = run.iterations.as_ref().is_some_and(|iterations| iterations.failed == 0 && iterations.ok > 0);
    if output.is_json {
        print(&printed.document.finish(name, is_ok, totals), false)?;
    } else {
        print(&TraceText::new(output.detail, colors()).totals(totals, is_ok), false)?;
    }
    let code = match (printed.unreachable, &run.ended_by) {
        (_, Some(EndReason::ScriptError(why))) if run.interrupted => {
            messages.error(why);
            exit::INTERRUPTED
        }
        _ if run.interrupted => exit::INTERRUPTED,
        (_, Some(EndReason::ScriptError(why))) => messages.usage_error(why),
        (Some((kind, origin)), _) => {
            let words = run.target.failure_details.get(kind.name()).map_or("", String::as_str);
            messages.usage_error(&format!("cannot reach {origin}: {}: {words}", kind.name()))
        }
        _ if is_ok => exit::OK,
        _ => exit::OBJECTIVE,
    };
    Ok(Some((run, code)))
}

/// Prints steps as they end, until the run is over.
fn print_steps(steps: &Receiver<StepTrace>, output: &PlayOutput) -> Result<Printed, String> {
    let text = TraceText::new(output.detail, colors());
    let mut mask = output.mask.clone();
    let mut printed = Printed { totals: PlayTotals::default(), unreachable: None, document: TraceDocument::default() };
    for trace in steps {
        for capture in trace.captures.iter().filter(|capture| capture.is_redacted) {
            mask.add(capture.json.trim_matches('"'));
        }
        trace.captures.iter().for_each(|it| mask.add_named(&it.name, it.json.trim_matches('"')));
        trace.variables.iter().for_each(|(name, value)| mask.add_named(name, value.json().trim_matches('"')));
        let (head, body) = split(&trace.request);
        mask.add_head(&head);
        mask.add_fields(&String::from_utf8_lossy(body));
        mask.add_head(&String::from_utf8_lossy(&trace.head));
        mask.add_fields(&String::from_utf8_lossy(&trace.body));
        printed.totals.add(&trace);
        if trace.verdict == "failed" {
            let kind = trace.transfer_failure;
            let kind = kind.filter(|kind| matches!(kind, FailureKind::Dns | FailureKind::Connect | FailureKind::Tls));
            printed.unreachable = kind.map(|kind| (kind, trace.origin.clone()));
        }
        if output.is_json {
            printed.document.add(&trace, &mask);
        } else {
            print(&text.step(&trace, &mask), false)?;
        }
    }
    Ok(printed)
}

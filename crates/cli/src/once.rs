//! One iteration of a scenario, with each request and response, for a person.

use std::sync::mpsc;
use std::thread;

use weir_decide::Nanos;
use weir_load::setup;
use weir_load::steps::StepTrace;
use weir_load::{self as load, LoadPlan, Options};

use super::exit;
use super::interrupt::Interrupt;
use super::messages::Messages;
use super::output::print;

/// Maximum size of a body that is shown, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 16 << 10;

/// Plays the scenarios of the options once: one user, one iteration. Exit code 1 if a step failed.
///
/// # Errors
/// One line, if the options are invalid or the service cannot be reached.
pub(super) fn play(options: &Options, messages: &Messages) -> Result<u8, String> {
    let options = options.single_iteration(options.scenarios.clone());
    let mut plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    let Some(mix) = &plan.scenarios else {
        return Err("--once plays a scenario; name one with -s FILE, or a --check".to_owned());
    };
    mix.warnings.iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let options = setup::set_up(&options, &mut || !interrupt.is_requested()).map_err(|error| error.to_string())?;
    if plan.has_setup() {
        plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    }
    let (trace, steps) = mpsc::channel::<StepTrace>();
    plan.trace = Some(trace);
    let printing = thread::spawn(move || {
        let mut shown = Ok(());
        for step in steps {
            if shown.is_ok() {
                shown = print(&text(&step), false);
            }
        }
        shown
    });
    let run = load::run(&plan, &[], &mut |_| !interrupt.is_requested(), None);
    drop(plan);
    let torn_down = setup::tear_down(&options, &mut || true);
    let printed = printing.join().unwrap_or_else(|_| Err("the printing thread failed".to_owned()));
    let run = run.map_err(|error| error.to_string())?;
    printed?;
    torn_down.map_err(|error| error.to_string())?;
    if run.interrupted {
        return Ok(exit::INTERRUPTED);
    }
    for step in run.steps.iter().filter(|step| step.unsent > 0) {
        let reason = step.samples.first().map_or("", |sample| sample.reason.as_str());
        messages.error(&format!("{}: not sent: {reason}", step.name));
    }
    let is_ok = run.iterations.as_ref().is_some_and(|iterations| iterations.failed == 0 && iterations.ok > 0);
    Ok(if is_ok { exit::OK } else { exit::OBJECTIVE })
}

/// Request and response as they were, and what was found.
fn text(step: &StepTrace) -> String {
    let mut text = format!("{}  {}\n", step.step, step.origin);
    let (head, body) = split(&step.request);
    text.push_str(&prefixed("> ", &head));
    push_body(&mut text, body);
    if step.head.is_empty() {
        text.push_str("< no response\n");
    } else {
        text.push_str(&prefixed("< ", &String::from_utf8_lossy(&step.head)));
        push_body(&mut text, &step.body);
    }
    for (check, holds) in &step.checks {
        text.push_str(&format!("  {} {check}\n", if *holds { "✓" } else { "✗" }));
    }
    for failure in &step.failures {
        text.push_str(&format!("  {}: {failure}\n", step.verdict));
    }
    text.push_str(&format!("  {} in {}\n\n", step.verdict, Nanos(step.service.0 / 1000 * 1000)));
    text
}

/// Head and body of a request.
fn split(request: &[u8]) -> (String, &[u8]) {
    let end = request.windows(4).position(|window| window == b"\r\n\r\n").map_or(request.len(), |at| at + 4);
    (String::from_utf8_lossy(&request[..end]).into_owned(), &request[end..])
}

fn prefixed(prefix: &str, head: &str) -> String {
    head.trim_end().lines().map(|line| format!("{prefix}{line}\n")).collect()
}

fn push_body(text: &mut String, body: &[u8]) {
    if body.is_empty() {
        return;
    }
    let start = &body[..body.len().min(MAX_SHOWN_BODY_BYTES)];
    match std::str::from_utf8(start) {
        Ok(shown) => text.push_str(shown.trim_end()),
        Err(_) => text.push_str(&format!("({} bytes that are no text)", body.len())),
    }
    if start.len() < body.len() {
        text.push_str(&format!("\n... {} bytes in all", body.len()));
    }
    text.push('\n');
}

//! Exit code of a load.

use weir_command::Messages;
use weir_command::exit;
use weir_load::LoadError;
use weir_measure::Run;
use weir_measure::end_reason::EndReason;

/// Exit code of a run whose files were written with the code `written`; logs the reason.
pub fn exit_code(run: &Run, strict: bool, written: u8, messages: &Messages) -> u8 {
    if run.interrupted {
        if let Some(EndReason::ScriptError(why)) = &run.ended_by {
            messages.error(why);
        }
        return exit::INTERRUPTED;
    }
    if written != exit::OK {
        return written;
    }
    if let Some(EndReason::ScriptError(why)) = &run.ended_by {
        messages.error(why);
        return exit::USAGE;
    }
    if let Some(why) = reason_of_server(run) {
        messages.error(&format!("none of {} requests succeeded; {why}", run.requests.total));
        return exit::UNTRUSTED;
    }
    if let Some(why) = run.failed_agent() {
        messages.error(why);
        return exit::UNTRUSTED;
    }
    if let Some(why) = &run.aborted {
        messages.error(&format!("aborted: {why}"));
        return exit::OBJECTIVE;
    }
    if run.requests.ok == 0 && !run.needs_no_requests() {
        let why = match run.main_failure() {
            Some((kind, words)) => format!("{kind}: {words}"),
            None => run.why_none_succeeded(),
        };
        messages.error(&format!("none of {} requests succeeded; {why}", run.requests.total));
        return exit::UNTRUSTED;
    }
    if let Some(all) = run.iterations.as_ref().filter(|all| all.total > 0 && all.ok == 0) {
        let kinds = run.failed_by_kind();
        let why = if kinds.is_empty() { "their requests succeeded, and the script failed" } else { &kinds };
        messages.error(&format!("none of {} iterations succeeded; {why}", all.total));
        return exit::UNTRUSTED;
    }
    if strict && !run.trust.ok {
        return exit::UNTRUSTED;
    }
    if let Some(why) = run.script.as_ref().and_then(|script| script.failure.as_ref()) {
        messages.error(why);
        return exit::OBJECTIVE;
    }
    if run.slo.iter().all(|held| held.ok) { exit::OK } else { exit::OBJECTIVE }
}

/// Exit code of a load that was interrupted before it began; logs that.
///
/// # Errors
/// One line, if there is another reason.
pub fn not_begun(why: &LoadError, messages: &Messages) -> Result<u8, String> {
    if !why.is_interrupt() {
        return Err(why.to_string());
    }
    messages.error(&why.to_string());
    Ok(exit::INTERRUPTED)
}

/// Reason that a language model's server has given, where no request has succeeded.
fn reason_of_server(run: &Run) -> Option<&str> {
    let is_failed = run.llm.is_some() && run.requests.ok == 0;
    let mut samples = run.steps.iter().flat_map(|step| &step.samples).filter(|_| is_failed);
    let reason = samples.next().map(|sample| &*sample.reason)?;
    // Of a failure that has a kind alone, the words are those of the kind.
    Some(run.target.failure_details.get(reason).map_or(reason, |words| words))
}

//! `weir send`: arguments of a bulk delivery; and the subcommands that inspect and change a job store.

mod arguments;
mod flag_values;
mod format;
mod queue;
mod request;
mod response_check;

use std::io::{self, Write};

pub(super) use self::arguments::SendArgs;
use self::format::SendFormat;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_send::state::State;
use weir_send_file::{BulkDelivery, BulkMessage, BulkOutcome};

pub(super) fn run(asked: &SendArgs, messages: &Messages) -> Result<u8, String> {
    match &asked.queue {
        Some(command) => queue::run(command, messages),
        None => deliver(asked, messages),
    }
}

fn deliver(asked: &SendArgs, messages: &Messages) -> Result<u8, String> {
    let delivery = BulkDelivery::open(asked.bulk_options(!messages.is_quiet())?)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let mut report = |message: BulkMessage<'_>| match message {
        BulkMessage::Note(text) => messages.note(text),
        BulkMessage::Error(text) => messages.error(text),
    };
    let outcome = delivery.run(&|| interrupt.is_requested(), &mut report)?;
    let text = match asked.format {
        SendFormat::Text => outcome.summary.text().to_owned(),
        SendFormat::Json => format!("{}\n", outcome.summary.json()),
    };
    if let Err(error) = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        messages.error(&format!("cannot write to stdout: {error}"));
    }
    Ok(exit_code(&outcome, &interrupt, messages))
}

fn exit_code(outcome: &BulkOutcome, interrupt: &Interrupt, messages: &Messages) -> u8 {
    let BulkOutcome { summary, input, is_input_incomplete, sender_error } = outcome;
    if let Some(why) = sender_error {
        messages.error(&why.to_string());
        return exit::USAGE;
    }
    if interrupt.is_requested() {
        return if interrupt.is_sigterm() { exit::OK } else { exit::INTERRUPTED };
    }
    if *is_input_incomplete {
        return exit::USAGE;
    }
    if input.invalid > 0 {
        let (noun, location) = (if input.invalid == 1 { "line is" } else { "lines are" }, &input.invalid_location);
        messages.error(&format!("{} {noun} invalid; see {location}", input.invalid));
    }
    let undelivered = summary.counts().jobs_in(State::DeadLettered) + summary.counts().jobs_in(State::Expired);
    if undelivered > 0 || input.invalid > 0 { exit::OBJECTIVE } else { exit::OK }
}

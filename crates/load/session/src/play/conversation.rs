//! Conversation over WebSocket, as text or as JSON.

use weir_base::Nanos;
use weir_base::terminal_text::single_line;
use weir_load::websocket::{ConversationPart, converse};
use weir_load::{LoadPlan, Options};
use weir_machine::clock::Clock;

use super::conversation_json::ConversationDocument;
use super::play_output::{PlayDetail, PlayOutput};
use crate::exit_code::not_begun;
use weir_command::stdout::print;
use weir_command::{Interrupt, Messages, exit};

/// Maximum length of a message that is printed, without `-v`, in bytes.
const SHOWN_BYTES: usize = 2048;

/// Plays a conversation over WebSocket: its messages, and what comes until the service closes or the timeout is over.
/// Exit code 1 if it ended otherwise.
///
/// # Errors
/// One line, if the options are invalid, the service cannot be reached, or it does not speak WebSocket there.
pub fn play_conversation(options: &Options, output: &PlayOutput, messages: &Messages) -> Result<u8, String> {
    let plan = LoadPlan::new(options).map_err(|error| error.to_string())?;
    plan.warnings().iter().for_each(|warning| messages.note(&format!("warning: {warning}")));
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let mask = plan.mask.clone().joined(&output.mask);
    let is_whole = output.detail == PlayDetail::Whole;
    let mut failed = None;
    let mut document = output.is_json.then(ConversationDocument::default);
    let clock = Clock::starting_in(Nanos::ZERO);
    let mut opened = Nanos::ZERO;
    let ended = converse(&plan, &mut |_| !interrupt.is_requested(), &mut |part| {
        if let Some(document) = &mut document {
            if matches!(part, ConversationPart::Opened(_)) {
                opened = clock.now();
            }
            return document.add(part, clock.now() - opened, &mask);
        }
        let line = mask.text(&line(part, is_whole)).into_owned();
        failed = failed.take().or_else(|| print(&format!("{line}\n"), false).err());
    });
    let is_good = match ended {
        Ok(is_good) => is_good,
        Err(why) => return not_begun(&why, messages),
    };
    if let Some(document) = document {
        failed = print(&document.finish(&plan.shown_url(), is_good), false).err();
    }
    match failed {
        Some(why) => Err(why),
        None if interrupt.is_requested() => Ok(exit::INTERRUPTED),
        None => Ok(if is_good { exit::OK } else { exit::OBJECTIVE }),
    }
}

fn line(part: &ConversationPart<'_>, is_whole: bool) -> String {
    match part {
        ConversationPart::Opened(None) => "* open".to_owned(),
        ConversationPart::Opened(Some(subprotocol)) => format!("* open, subprotocol {}", single_line(subprotocol)),
        ConversationPart::Sent(is_text, data) => format!("> {}", content(*is_text, data, is_whole)),
        ConversationPart::Received(is_text, data) => format!("< {}", content(*is_text, data, is_whole)),
        ConversationPart::Ping(data) => format!("< ping, {} bytes", data.len()),
        ConversationPart::SentClose(code) => format!("> close {code}"),
        ConversationPart::ReceivedClose(code, "") => format!("< close {code}"),
        ConversationPart::ReceivedClose(code, reason) => format!("< close {code} ({})", single_line(reason)),
        ConversationPart::Ended => "* ended without a close frame".to_owned(),
        ConversationPart::Violation(violation) => format!("* the service broke the protocol: {violation}"),
    }
}

/// Text on one line, or the beginning of it; of bytes their number and hexadecimal digits.
fn content(is_text: bool, data: &[u8], is_whole: bool) -> String {
    let shown = if is_whole { data } else { &data[..data.len().min(SHOWN_BYTES)] };
    let left = data.len() - shown.len();
    let rest = if left > 0 { format!(" ... {left} bytes more; -v prints them") } else { String::new() };
    if is_text {
        return single_line(&String::from_utf8_lossy(shown)) + &rest;
    }
    let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("binary, {} bytes: {digits}{rest}", data.len())
}

//! `weir send`: its arguments, and its journey from lines of jobs to lines of results; and what a person does to a store.

mod arguments;
mod input;
mod queue;
mod request;
mod results;
mod summary;
mod tally;
mod watch;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use self::arguments::Format;
pub(super) use self::arguments::SendArgs;
use self::input::{Input, Reading, Taken};
use self::results::Results;
use self::summary::Summary;
use self::tally::{Tally, lock};
use self::watch::Watch;
use super::exit;
use super::interrupt::Interrupt;
use super::messages::Messages;
use crate::decide::Nanos;
use crate::live::board::Board;
use crate::machine::clock::Clock;
use crate::send::state::State;
use crate::send::store::Store;
use crate::send::{SendFailed, Sender};

/// How often signals are looked for, and the view is drawn.
const LOOK: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const LINE: Nanos = Nanos::from_secs(5);

pub(super) fn run(asked: &SendArgs, messages: &Messages) -> u8 {
    let ended = match &asked.queue {
        Some(command) => queue::run(command, messages),
        None => try_run(asked, messages),
    };
    match ended {
        Ok(code) => code,
        Err(why) => {
            messages.error(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: &SendArgs, messages: &Messages) -> Result<u8, String> {
    let form = asked.form()?;
    let options = asked.options(&form)?;
    let input = Input::open(asked.jobs(), asked.out.as_deref())?;
    let store = asked.store()?;
    let keys = options.keys.clone();
    let tally = Arc::new(Mutex::new(Tally::new(keys.iter().map(|key| key.name().to_owned()).collect())));
    let (alive, ended) = mpsc::channel();
    let results = Results::open(asked.out.as_deref(), Arc::clone(&tally), &store, alive)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let clock = Clock::starting_in(Nanos::ZERO);
    let sender = Sender::start(Arc::clone(&store), options, Box::new(results)).map_err(|why| why.to_string())?;
    if sender.recovered().maybe_sent > 0 {
        let recovered = sender.recovered();
        messages.note(&format!(
            "a sender before this one ended in the middle: {} jobs go on, {} of them may have been sent already",
            recovered.jobs, recovered.maybe_sent
        ));
    }
    for (hint, jobs) in store.hints().map_err(|why| why.to_string())? {
        if let Some(hint) = hint.filter(|hint| !keys.iter().any(|key| key.is(hint))) {
            messages.note(&format!(
                "{jobs} of the jobs in the store are for key {hint}, which is not given; they stay there"
            ));
        }
    }
    let taken = Arc::new(Mutex::new(Taken::default()));
    let (reading, read) = mpsc::channel();
    {
        let (store, taken) = (Arc::clone(&store), Arc::clone(&taken));
        let reader = Reading { input, form, keys, store, taken };
        let begun = thread::Builder::new().name("weir-jobs".into()).spawn(move || {
            let _ = reading.send(reader.run());
        });
        begun.map_err(|error| format!("cannot read the jobs: {error}"))?;
    }
    let mut watch = Watch::new(Arc::clone(&tally), Arc::clone(&store), clock);
    let mut view = (!messages.is_quiet()).then(Board::new);
    let (mut next_line, mut told, mut unread, mut trouble) = (LINE, false, None, false);
    loop {
        match ended.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.asked() && !told {
            told = true;
            aside(view.as_mut(), || messages.note("waiting for what is out; press Ctrl-C again to end at once"));
            sender.drain(asked.grace());
        }
        match read.try_recv() {
            Ok(Ok(())) => sender.finish(),
            Ok(Err(why)) => {
                aside(view.as_mut(), || messages.error(&why));
                unread = Some(why);
                sender.finish();
            }
            Err(_) => {}
        }
        let away = store.trouble();
        if away.is_some() != trouble {
            trouble = away.is_some();
            let text = match away {
                Some(why) => {
                    format!("the store does not answer ({why}); what is in hand goes on while its keys' leases last")
                }
                None => "the store answers again".into(),
            };
            aside(view.as_mut(), || messages.note(&text));
        }
        watch.look(sender.progress());
        if let Some(view) = &mut view {
            if view.is_shown() {
                view.update(watch.ended(), watch.known(), &watch.headline(), &watch.lines(view.rows()));
            } else if clock.now() >= next_line {
                next_line = clock.now() + LINE;
                messages.note(&watch.line());
            }
        }
    }
    if let Some(view) = view {
        view.finish();
    }
    let failed = sender.join().err();
    watch.look_at_store();
    let taken = lock(&taken).clone();
    let summary = Summary::new(&watch, &taken, interrupt.asked());
    summary.show(asked.format == Format::Json, messages);
    Ok(code(&summary, &taken, failed, unread.is_some(), &interrupt, messages))
}

/// Says something while there is a view on the terminal, or none.
fn aside(view: Option<&mut Board>, says: impl FnOnce()) {
    match view {
        Some(view) => view.aside(says),
        None => says(),
    }
}

fn code(
    summary: &Summary,
    taken: &Taken,
    failed: Option<SendFailed>,
    unread: bool,
    interrupt: &Interrupt,
    messages: &Messages,
) -> u8 {
    if let Some(why) = failed {
        messages.error(&why.to_string());
        return exit::USAGE;
    }
    if interrupt.asked() {
        return if interrupt.was_told_to_end() { exit::OK } else { exit::INTERRUPTED };
    }
    if unread {
        return exit::USAGE;
    }
    if taken.rejected > 0 {
        let (noun, place) = (if taken.rejected == 1 { "line was" } else { "lines were" }, &taken.rejects);
        messages.error(&format!("{} {noun} not understood; see {place}", taken.rejected));
    }
    let undelivered = summary.counts().of(State::Graveyard) + summary.counts().of(State::Expired);
    if undelivered > 0 || taken.rejected > 0 { exit::OBJECTIVE } else { exit::OK }
}

type Queue = Arc<dyn Store>;

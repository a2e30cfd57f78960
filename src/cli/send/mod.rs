//! `weir send`: from lines of jobs to lines of results; and the subcommands that inspect and change a job store.

mod arguments;
mod counters;
mod input;
mod progress;
mod queue;
mod request;
mod results;
mod summary;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(super) use self::arguments::SendArgs;
use self::arguments::SendFormat;
use self::counters::SendStats;
use self::input::{InputCounts, JobInput, JobReader};
use self::progress::SendMonitor;
use self::results::ResultsFile;
use self::summary::SendSummary;
use super::exit;
use super::interrupt::Interrupt;
use super::messages::Messages;
use crate::decide::Nanos;
use crate::live::dashboard::Dashboard;
use crate::machine::clock::Clock;
use crate::machine::lock::lock;
use crate::send::state::State;
use crate::send::store::Store;
use crate::send::{Sender, SenderError};

/// Interval of checks for signals, and of frames of the live view.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of progress lines without a terminal.
const PROGRESS_LINE_INTERVAL: Nanos = Nanos::from_secs(5);

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
    let job_defaults = asked.job_defaults()?;
    let options = asked.options(&job_defaults)?;
    let input = JobInput::open(asked.jobs(), asked.out.as_deref())?;
    let store = asked.open_store()?;
    let keys = options.keys.clone();
    let tally = Arc::new(Mutex::new(SendStats::new(keys.iter().map(|key| key.name().to_owned()).collect())));
    let (alive, ended) = mpsc::channel();
    let results = ResultsFile::open(asked.out.as_deref(), Arc::clone(&tally), &store, alive)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let clock = Clock::starting_in(Nanos::ZERO);
    let sender = Sender::start(Arc::clone(&store), options, Box::new(results)).map_err(|why| why.to_string())?;
    if sender.recovered().maybe_sent > 0 {
        let recovered = sender.recovered();
        messages.note(&format!(
            "recovered after a crash: {} jobs continue, {} of them may have been sent already",
            recovered.jobs, recovered.maybe_sent
        ));
    }
    for (hint, jobs) in store.queued_by_key().map_err(|why| why.to_string())? {
        if let Some(hint) = hint.filter(|hint| !keys.iter().any(|key| key.matches(hint))) {
            messages.note(&format!(
                "{jobs} of the jobs in the store are pinned to key {hint}, which is not given; they stay there"
            ));
        }
    }
    let taken = Arc::new(Mutex::new(InputCounts::default()));
    let (reading, read) = mpsc::channel();
    {
        let (store, taken) = (Arc::clone(&store), Arc::clone(&taken));
        let reader = JobReader { input, job_defaults, keys, store, counts: taken };
        let begun = thread::Builder::new().name("weir-jobs".into()).spawn(move || {
            let _ = reading.send(reader.run());
        });
        begun.map_err(|error| format!("cannot read the jobs: {error}"))?;
    }
    let mut watch = SendMonitor::new(Arc::clone(&tally), Arc::clone(&store), clock);
    let mut view = (!messages.is_quiet()).then(Dashboard::new);
    let (mut next_line, mut is_draining, mut unread, mut is_unreachable) = (PROGRESS_LINE_INTERVAL, false, None, false);
    loop {
        match ended.recv_timeout(POLL_INTERVAL) {
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.is_requested() && !is_draining {
            is_draining = true;
            print_beside_view(view.as_mut(), || {
                messages.note("waiting for requests in flight; press Ctrl-C again to end at once");
            });
            sender.drain(asked.grace());
        }
        match read.try_recv() {
            Ok(Ok(())) => sender.finish(),
            Ok(Err(why)) => {
                print_beside_view(view.as_mut(), || messages.error(&why));
                unread = Some(why);
                sender.finish();
            }
            Err(_) => {}
        }
        let unreachable = store.unreachable_reason();
        if unreachable.is_some() != is_unreachable {
            is_unreachable = unreachable.is_some();
            let text = match unreachable {
                Some(reason) => {
                    format!(
                        "the store is unreachable ({reason}); leased jobs go on until the leases of their keys expire"
                    )
                }
                None => "the store is reachable again".into(),
            };
            print_beside_view(view.as_mut(), || messages.note(&text));
        }
        watch.poll(sender.progress());
        if let Some(view) = &mut view {
            if view.is_shown() {
                view.update(watch.ended_jobs(), watch.total_jobs(), &watch.headline(), &watch.lines(view.rows()));
            } else if clock.now() >= next_line {
                next_line = clock.now() + PROGRESS_LINE_INTERVAL;
                messages.note(&watch.progress_line());
            }
        }
    }
    if let Some(view) = view {
        view.finish();
    }
    let failed = sender.join().err();
    watch.refresh_counts();
    let taken = lock(&taken).clone();
    let summary = SendSummary::new(&watch, &taken, interrupt.is_requested());
    summary.show(asked.format == SendFormat::Json, messages);
    Ok(exit_code(&summary, &taken, failed, unread.is_some(), &interrupt, messages))
}

/// Prints above the live view, if there is one.
fn print_beside_view(view: Option<&mut Dashboard>, print: impl FnOnce()) {
    match view {
        Some(view) => view.print_above(print),
        None => print(),
    }
}

fn exit_code(
    summary: &SendSummary,
    taken: &InputCounts,
    failed: Option<SenderError>,
    unread: bool,
    interrupt: &Interrupt,
    messages: &Messages,
) -> u8 {
    if let Some(why) = failed {
        messages.error(&why.to_string());
        return exit::USAGE;
    }
    if interrupt.is_requested() {
        return if interrupt.is_sigterm() { exit::OK } else { exit::INTERRUPTED };
    }
    if unread {
        return exit::USAGE;
    }
    if taken.invalid > 0 {
        let (noun, location) = (if taken.invalid == 1 { "line is" } else { "lines are" }, &taken.invalid_location);
        messages.error(&format!("{} {noun} invalid; see {location}", taken.invalid));
    }
    let undelivered = summary.counts().jobs_in(State::DeadLettered) + summary.counts().jobs_in(State::Expired);
    if undelivered > 0 || taken.invalid > 0 { exit::OBJECTIVE } else { exit::OK }
}

type StoreHandle = Arc<dyn Store>;

//! An agent's own side: a process that drives its part of a load, and ends when nobody is there to tell.

use std::io::{self, BufReader, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::speech::{Job, News, Order, next_line};
use crate::decide::Nanos;
use crate::load::{self, Beginning, Plan, Told};
use crate::machine::clock::{self, Clock};
use crate::measure::parcel::{Parcel, Slip};

/// Who hears nothing for so long is alone.
pub const SILENCE: Nanos = Nanos::from_secs(10);

/// What both threads of an agent know.
#[derive(Debug, Default)]
struct Shared {
    /// The load that is being driven.
    current: Mutex<Option<Arc<Current>>>,
    /// When something was heard last, by the machine's clock.
    heard: AtomicU64,
}

/// A load that is being driven.
#[derive(Debug)]
struct Current {
    beginning: Beginning,
    stop: AtomicBool,
}

/// An agent's life: orders on stdin, news on stdout. It ends with its stdin.
///
/// # Errors
/// When nobody takes its news.
pub fn run() -> io::Result<()> {
    say(&News::Hello(env!("CARGO_PKG_VERSION").to_owned()))?;
    let shared = Arc::new(Shared::default());
    shared.heard.store(clock::monotonic().0, Ordering::Relaxed);
    let (jobs, to_do) = mpsc::channel();
    let listening = Arc::clone(&shared);
    thread::spawn(move || {
        // Not an end in good order: nobody is there to tell what was measured.
        let code = i32::from(listen(&listening, &jobs).is_err());
        std::process::exit(code);
    });
    loop {
        match to_do.recv_timeout(Duration::from_secs(1)) {
            Ok((job, current)) => drive(&job, &current, &shared)?,
            Err(RecvTimeoutError::Timeout) if shared.is_alone() => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Takes orders until there is nobody to give them. Clocks are read here, whatever the load does.
fn listen(shared: &Shared, jobs: &Sender<(Box<Job>, Arc<Current>)>) -> io::Result<()> {
    let mut stdin = BufReader::new(io::stdin().lock());
    while let Some(line) = next_line(&mut stdin)? {
        let now = clock::monotonic();
        shared.heard.store(now.0, Ordering::Relaxed);
        match serde_json::from_str(&line)? {
            Order::Probe(probe) => say(&News::Clock { probe, at: now })?,
            Order::Load(job) => {
                let current =
                    Arc::new(Current { beginning: Beginning::by_appointment(), stop: AtomicBool::new(false) });
                *shared.current() = Some(Arc::clone(&current));
                if jobs.send((job, current)).is_err() {
                    return Ok(());
                }
            }
            Order::Start(at) => {
                if let Some(current) = shared.current().as_ref() {
                    current.beginning.appoint(Clock::striking_at(at));
                }
            }
            Order::Stop => {
                if let Some(current) = shared.current().as_ref() {
                    current.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }
    Ok(())
}

fn drive(job: &Job, current: &Current, shared: &Shared) -> io::Result<()> {
    let plan = match Plan::of(&job.options, job.place) {
        Ok(plan) => Plan { stretch: Nanos(job.stretch.0.max(1)), preconnect: plan.deal.count(job.preconnect), ..plan },
        Err(why) => return say(&News::Refused(why.to_string())),
    };
    let (mut is_ready, mut failed) = (false, None);
    let mut listen = |_: Nanos, told: Option<Told>| {
        let ready = (!is_ready && current.beginning.is_ready()).then_some(News::Ready(plan.threads));
        is_ready |= ready.is_some();
        let news = told.map(|told| match told {
            Told::Stretch(stretch, interval) => News::Stretch(stretch, Slip::of(&interval)),
            Told::Rest(stretch, interval) => News::Rest(stretch, Slip::of(&interval)),
        });
        for news in ready.into_iter().chain(news) {
            failed = say(&news).err().or(failed.take());
        }
        failed.is_none() && !current.stop.load(Ordering::Relaxed) && !shared.is_alone()
    };
    let driven = load::drive(&plan, &current.beginning, true, &mut listen, None);
    if let Some(error) = failed {
        return Err(error);
    }
    match driven {
        Ok(driven) => {
            if !is_ready {
                say(&News::Ready(plan.threads))?;
            }
            say(&News::Done(Box::new(Parcel::of(&driven.counted))))
        }
        Err(why) => say(&News::Refused(why.to_string())),
    }
}

fn say(news: &News) -> io::Result<()> {
    let mut line = serde_json::to_string(news)?;
    line.push('\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

impl Shared {
    fn current(&self) -> std::sync::MutexGuard<'_, Option<Arc<Current>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has said anything for too long.
    fn is_alone(&self) -> bool {
        clock::monotonic() - Nanos(self.heard.load(Ordering::Relaxed)) > SILENCE
    }
}

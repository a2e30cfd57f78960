//! Keys that change a load while it runs, where stdin and stderr are terminals.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use weir_load::LoadControl;
use weir_pace::live_load::{LevelKind, LiveLoad, LoadChange};

/// Keys of a load, for the line at the start.
pub(super) fn words(load: &LiveLoad) -> &'static str {
    match load.is_recorded() {
        true => "key: q stops",
        false => "keys: + and - change the load by a tenth, space pauses, q stops",
    }
}

/// Keys of a terminal while a load runs; dropping it gives the terminal back.
#[derive(Debug)]
pub(super) struct LiveKeys {
    /// Modes of the terminal before, and while keys are read.
    modes: [Termios; 2],
    ended: Arc<AtomicBool>,
    /// Disconnected by the end of the thread that reads.
    reader: Receiver<()>,
}

/// Maximum time to wait for the thread that reads. A key is no longer there for a read after the terminal was given back
/// line by line, or to another process; the read then lasts until the next line.
const READER_TIMEOUT: Duration = Duration::from_millis(500);
/// Time within which the end of the load is noticed.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl LiveKeys {
    /// Whether there is a terminal to read keys of.
    pub(super) fn are_possible() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal() && Self::is_foreground()
    }

    /// Whether the process has the terminal: in the background, a change of it would stop the process.
    pub(super) fn is_foreground() -> bool {
        tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
    }

    /// Gives the terminal back, for a while.
    pub(super) fn suspend(&self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.modes[0]);
    }

    /// Takes the terminal again.
    pub(super) fn resume(&self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.modes[1]);
    }

    /// Reads keys, and forwards them, too; `is_interrupted` gives the terminal back at once.
    pub(super) fn listen(
        control: &LoadControl,
        is_interrupted: impl Fn() -> bool + Send + 'static,
        forward: Option<Sender<u8>>,
    ) -> Option<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut by_key = before.clone();
        // Signals of Ctrl-C and Ctrl-Z stay.
        by_key.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &by_key).ok()?;
        let ended = Arc::new(AtomicBool::new(false));
        let (is_over, control) = (Arc::clone(&ended), control.clone());
        // Gives it back also if there is no thread.
        let modes = [before.clone(), by_key];
        let terminal = KeyTerminal(before);
        let (running, reader) = channel();
        let thread = thread::Builder::new().name("weir-keys".into()).spawn(move || {
            // In this order: the terminal is given back first.
            let _running: Sender<()> = running;
            let terminal = terminal;
            while !is_over.load(Ordering::Relaxed) && !is_interrupted() {
                let Some(key) = terminal.key() else { continue };
                // What does not go with the load, or comes too late, changes nothing; the progress line shows the load.
                let _ = change_of(key, &control).map(|change| control.change(change));
                // The view may be gone already.
                let _ = forward.as_ref().map(|forward| forward.send(key));
            }
        });
        thread.is_ok().then_some(Self { modes, ended, reader })
    }
}

impl Drop for LiveKeys {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if self.reader.recv_timeout(READER_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            self.suspend();
        }
    }
}

/// Terminal that hands over keys at once; as before when dropped.
struct KeyTerminal(Termios);

impl KeyTerminal {
    /// Next key, if there is one within a moment.
    fn key(&self) -> Option<u8> {
        let stdin = io::stdin();
        let mut files = [PollFd::new(&stdin, PollFlags::IN)];
        let ready = poll(&mut files, Some(&POLL_INTERVAL)).is_ok_and(|ready| ready > 0);
        if ready && !LiveKeys::is_foreground() {
            // The keys are those of the shell; to read them would stop the process.
            let _ = poll(&mut [], Some(&POLL_INTERVAL));
            return None;
        }
        let mut key = [0];
        // Not by the buffered stdin, which would take more than one.
        (ready && rustix::io::read(&stdin, &mut key).is_ok_and(|read| read == 1)).then_some(key[0])
    }
}

impl Drop for KeyTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Change that a key makes.
fn change_of(key: u8, control: &LoadControl) -> Option<LoadChange> {
    let load = control.load();
    let level = load.latest_level(control.elapsed()?);
    let scaled = |factor: f64| match load.kind() {
        LevelKind::Rate => LoadChange::Rate(rounded(level * factor)),
        LevelKind::Users if factor > 1.0 => LoadChange::Users((level * factor).ceil() as u64),
        LevelKind::Users => LoadChange::Users(((level * factor).floor() as u64).max(1)),
    };
    match key {
        b'+' | b'=' if level > 0.0 => Some(scaled(1.1)),
        b'-' if level > 0.0 => Some(scaled(1.0 / 1.1)),
        b' ' if load.is_paused() => Some(LoadChange::Resume),
        b' ' => Some(LoadChange::Pause),
        b'q' => Some(LoadChange::Stop),
        _ => None,
    }
}

/// Rate with three digits.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    if unit.is_finite() && unit > 0.0 { (rate / unit).round() * unit } else { rate }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn a_rate_keeps_three_digits() {
        assert_eq!([rounded(220.000_000_01), rounded(12_345.0), rounded(99.96)], [220.0, 12_300.0, 100.0]);
        assert!((rounded(0.123_45) - 0.123).abs() < 1e-9);
    }
}

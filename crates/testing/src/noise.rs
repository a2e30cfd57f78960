//! Noise: what a shared machine does to a process, done to it on purpose.
//!
//! [`Stalls`] are those of a host that runs other guests: the process stands still for some milliseconds, some times a
//! second, and knows nothing of it. [`Burner`] is a neighbour on a core. Both are guards: when one is dropped, after a
//! failed test too, the process goes on and the core is free. Lengths and gaps are drawn from a seed; when exactly they
//! begin is up to the machine, so that a test asks what happened ([`Stalls::count`], [`Stalls::end`]) and asserts
//! nothing about the schedule.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use weir_base::rng::SeededRng;

/// How often a process stands still, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Stalling {
    /// Mean number of stalls in a second of running; the gaps between them are exponential.
    pub per_s: f64,
    /// Lengths are uniform from the first to the second.
    pub length: (Duration, Duration),
    pub seed: u64,
}

impl Default for Stalling {
    /// 5 to 50 ms, five times a second.
    fn default() -> Self {
        Self { per_s: 5.0, length: (Duration::from_millis(5), Duration::from_millis(50)), seed: 1 }
    }
}

/// One stall as it happened: all threads stood still at the first instant; SIGCONT was sent after the second.
pub type Stall = (Instant, Instant);

/// Stalls of one process, until dropped or the process ends.
pub struct Stalls {
    happened: Arc<Mutex<Vec<Stall>>>,
    thread: Task,
}

impl Stalls {
    /// Stalls the process `pid`, which has to be a child that is not waited for yet.
    pub fn of(pid: u32, how: Stalling) -> Self {
        let process = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty()).unwrap();
        let happened = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&happened);
        Self { happened, thread: Task::start(move |end| stall(&process, how, &shared, end)) }
    }

    /// The number of stalls that have ended.
    pub fn count(&self) -> usize {
        self.happened.lock().unwrap().len()
    }

    /// Ends them, and returns what happened.
    pub fn end(mut self) -> Vec<Stall> {
        self.thread.stop();
        std::mem::take(&mut self.happened.lock().unwrap())
    }
}

/// Stalls the process `pid`, a child that is not waited for yet, once and for this long.
pub fn stall_once(pid: u32, length: Duration) {
    let process = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty()).unwrap();
    let _still = Still::new(&process).unwrap();
    thread::sleep(length);
}

fn stall(process: &OwnedFd, how: Stalling, happened: &Mutex<Vec<Stall>>, end: &Receiver<()>) {
    let mut rng = SeededRng::new(how.seed, 0);
    let (shortest, longest) = how.length;
    loop {
        let gap = Duration::from_secs_f64(rng.exponential() / how.per_s);
        let length = shortest + (longest - shortest).mul_f64(rng.unit());
        if ends_within(end, gap) {
            return;
        }
        let Ok(still) = Still::new(process) else { return };
        let begun = Instant::now();
        let ends = ends_within(end, length);
        let ended = Instant::now();
        drop(still);
        happened.lock().unwrap().push((begun, ended));
        if ends {
            return;
        }
    }
}

/// A process that stands still, until dropped.
struct Still<'a>(&'a OwnedFd);

impl<'a> Still<'a> {
    fn new(process: &'a OwnedFd) -> rustix::io::Result<Self> {
        pidfd_send_signal(process, Signal::STOP)?;
        let still = Self(process);
        // Its threads stop a moment later: one in the kernel, say with a packet, goes on to the end of that.
        waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        Ok(still)
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        // It may have been killed meanwhile.
        let _ = pidfd_send_signal(self.0, Signal::CONT);
    }
}

/// A neighbour that takes a core for a while again and again, until dropped.
pub struct Burner {
    rounds: Arc<AtomicU64>,
    _thread: Task,
}

impl Burner {
    /// Takes the `core`-th of the cores that this process may use (counted round) for `busy` out of every `period`.
    pub fn on(core: usize, busy: Duration, period: Duration) -> Self {
        let rounds = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rounds);
        let idle = period.saturating_sub(busy);
        let thread = Task::start(move |end| {
            pin(core);
            loop {
                let begun = Instant::now();
                while begun.elapsed() < busy {
                    std::hint::spin_loop();
                }
                counted.fetch_add(1, Ordering::Relaxed);
                if ends_within(end, idle) {
                    return;
                }
            }
        });
        Self { rounds, _thread: thread }
    }

    /// How many times it has taken the core.
    pub fn count(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

fn pin(core: usize) {
    let allowed = sched_getaffinity(None).unwrap();
    let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let mut set = CpuSet::new();
    set.set(cores[core % cores.len()]);
    sched_setaffinity(None, &set).unwrap();
}

/// Waits; whether it was told to end before the time was over.
fn ends_within(end: &Receiver<()>, time: Duration) -> bool {
    end.recv_timeout(time) != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
}

/// A thread that is told to end, and waited for, when this is dropped.
struct Task {
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Task {
    fn start(work: impl FnOnce(&Receiver<()>) + Send + 'static) -> Self {
        let (alive, end) = channel();
        Self { alive: Some(alive), thread: Some(thread::spawn(move || work(&end))) }
    }

    fn stop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the noise ended by a panic");
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.stop();
    }
}

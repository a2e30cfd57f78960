//! An event loop that its thread turns when it has the time: tokio's, without a thread of its own.
//!
//! Under asyncio it is a guest: asyncio watches the file descriptor of tokio's epoll instance as it watches a socket,
//! and a [`turn`](EventLoop::turn) does what there is to do without ever waiting. So a call costs no wake-up of another
//! thread, and all that has come since the last turn is taken in one. Under a blocking call the calling thread turns
//! it until its answer is there.
//!
//! A turn must not leave anything that could go on, for nobody would turn again. tokio does not say whether
//! its queue is empty; a `LocalSet` does, through the waker that it is polled with: that is [`TaskWaker`].

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use weir::decide::Nanos;
use weir::machine::clock::Clock;
use weir::machine::timer::Timer;

/// Rounds of tasks before others on this thread have their turn.
const MAX_POLL_ROUNDS: usize = 64;

/// tokio on this thread, its tasks, and its exact timer.
pub(crate) struct EventLoop {
    // In the order in which they have to be dropped.
    tasks: RefCell<Pin<Box<LocalSet>>>,
    waker: Waker,
    task_waker: Arc<TaskWaker>,
    timer: Timer,
    epoll: RawFd,
    runtime: Runtime,
}

/// Whether a task can go on.
struct TaskWaker {
    is_woken: AtomicBool,
    /// A turn is under way and will look at `rung` before it ends.
    is_turning: AtomicBool,
    /// Wakes the runtime, so that its epoll instance is readable.
    runtime: OnceLock<Waker>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if !self.is_turning.load(Ordering::SeqCst)
            && let Some(runtime) = self.runtime.get()
        {
            runtime.wake_by_ref();
        }
    }
}

/// The clock of all calls of this process.
pub(crate) fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(|| Clock::starting_in(Nanos::ZERO))
}

impl EventLoop {
    /// An event loop of this thread.
    ///
    /// # Errors
    /// When the system has no epoll instance or timer for us.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (epoll, timer, alarm) = {
            let _inside = runtime.enter();
            let epoll = epoll_of_this_runtime()?;
            let (timer, alarm) = Timer::new(clock())?;
            (epoll, timer, alarm)
        };
        let tasks = LocalSet::new();
        tasks.spawn_local(alarm);
        let bell = Arc::new(TaskWaker {
            is_woken: AtomicBool::new(true),
            is_turning: AtomicBool::new(false),
            runtime: OnceLock::new(),
        });
        let waker = Waker::from(Arc::clone(&bell));
        Ok(Self { tasks: RefCell::new(Box::pin(tasks)), waker, task_waker: bell, timer, epoll, runtime })
    }

    /// Readable when a turn has something to do.
    pub(crate) fn epoll(&self) -> RawFd {
        self.epoll
    }

    /// Exact waits on this event loop.
    pub(crate) fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Does what can be done now, and says whether to turn again at once.
    ///
    /// `start` runs after a look at what has come; what it spawns is begun.
    pub(crate) fn turn(&self, start: impl FnOnce(&LocalSet)) -> bool {
        let _inside = self.runtime.enter();
        self.task_waker.is_turning.store(true, Ordering::SeqCst);
        self.poll_events();
        start(&self.tasks.borrow());
        self.run_tasks();
        self.task_waker.is_turning.store(false, Ordering::SeqCst);
        // What rang since the last round did not wake the runtime.
        self.task_waker.is_woken.load(Ordering::SeqCst)
    }

    /// Turns until `done` has something. `start` runs first; with `look`, after a look at what has come meanwhile.
    pub(crate) fn run_until<T>(
        &self,
        look: bool,
        start: impl FnOnce(&LocalSet),
        mut done: impl FnMut() -> Option<T>,
    ) -> T {
        let _inside = self.runtime.enter();
        self.task_waker.is_turning.store(true, Ordering::SeqCst);
        if look {
            self.poll_events();
        }
        start(&self.tasks.borrow());
        loop {
            self.run_tasks();
            let found = done();
            self.task_waker.is_turning.store(false, Ordering::SeqCst);
            if let Some(value) = found {
                return value;
            }
            self.wait();
            self.task_waker.is_turning.store(true, Ordering::SeqCst);
        }
    }

    /// Asks the system what has come; whom that concerns can go on afterwards.
    fn poll_events(&self) {
        let mut looked = false;
        self.runtime.block_on(poll_fn(|cx| {
            self.task_waker.runtime.get_or_init(|| cx.waker().clone());
            if std::mem::replace(&mut looked, true) {
                return Poll::Ready(());
            }
            // tokio looks before it polls us again.
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
    }

    /// Waits until a task can go on.
    fn wait(&self) {
        self.runtime.block_on(poll_fn(|cx| {
            self.task_waker.runtime.get_or_init(|| cx.waker().clone());
            if self.task_waker.is_woken.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }));
    }

    /// Runs tasks until none can go on, or for long enough.
    ///
    /// Not within `block_on`: there, tokio keeps the wakers of tasks that yield until it looks again, and forgets them
    /// when `block_on` ends before. Outside it wakes them at once.
    fn run_tasks(&self) {
        let mut tasks = self.tasks.borrow_mut();
        let mut cx = Context::from_waker(&self.waker);
        for _ in 0..MAX_POLL_ROUNDS {
            if !self.task_waker.is_woken.swap(false, Ordering::SeqCst) {
                return;
            }
            let _ = tasks.as_mut().poll(&mut cx);
        }
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        // Tasks hold sockets, which leave the epoll instance when they are dropped.
        let _inside = self.runtime.enter();
        *self.tasks.get_mut() = Box::pin(LocalSet::new());
    }
}

/// Finds the epoll instance of the runtime that this thread is in: the one that watches what we have it watch. tokio
/// does not tell, the system does.
fn epoll_of_this_runtime() -> io::Result<RawFd> {
    let probe = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
    let number = probe.as_raw_fd();
    #[expect(deprecated, reason = "an OwnedFd stays open while it is registered; what replaces this is unsafe")]
    let _watched = AsyncFd::with_interest(probe, Interest::READABLE)?;
    for entry in std::fs::read_dir("/proc/self/fdinfo")? {
        let path = entry?.path();
        let Some(fd) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        // One that another thread has closed meanwhile is not ours.
        let Ok(info) = std::fs::read_to_string(&path) else { continue };
        let watches = |line: &str| {
            line.strip_prefix("tfd:").and_then(|rest| rest.split_whitespace().next()) == Some(&number.to_string())
        };
        if info.lines().any(watches) {
            return Ok(fd);
        }
    }
    Err(io::Error::other("no epoll instance in /proc/self/fdinfo"))
}

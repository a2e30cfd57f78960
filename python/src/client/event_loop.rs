//! Event loop of tokio without a thread of its own: its thread runs it turn by turn.
//!
//! Under asyncio, asyncio watches the file descriptor of tokio's epoll instance like a socket, and a
//! [`turn`](EventLoop::turn) does all pending work without waiting. So a call wakes no other thread, and all events
//! since the last turn are handled in one. Under a blocking call the calling thread runs turns until its response is
//! complete.
//!
//! A turn must not leave work pending, since nothing would start the next one. tokio does not report whether its queue
//! is empty; a `LocalSet` does, through the waker that it is polled with: [`TaskWaker`].

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::epoll::EventFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use weir::base::Nanos;
use weir::machine::clock::Clock;
use weir::machine::timer::Timer;

/// Maximum polls of the tasks in one turn, for fairness to other work of the thread.
const MAX_POLL_ROUNDS: usize = 64;

/// tokio on this thread, with its tasks and an exact timer.
pub(crate) struct EventLoop {
    // The order matters: fields are dropped from top to bottom.
    tasks: RefCell<Pin<Box<LocalSet>>>,
    waker: Waker,
    task_waker: Arc<TaskWaker>,
    timer: Timer,
    epoll: RawFd,
    runtime: Runtime,
}

/// Waker of all tasks: records that one of them can run.
struct TaskWaker {
    is_woken: AtomicBool,
    /// A turn is running, and will check `is_woken` before it ends.
    is_turning: AtomicBool,
    /// Waker of the runtime, which makes its epoll instance readable.
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

/// Clock of all calls of this process.
pub(crate) fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(|| Clock::starting_in(Nanos::ZERO))
}

impl EventLoop {
    /// Creates an event loop for this thread.
    ///
    /// # Errors
    /// Without an epoll instance or timer, e.g. with too many open files.
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
        let task_waker = Arc::new(TaskWaker {
            is_woken: AtomicBool::new(true),
            is_turning: AtomicBool::new(false),
            runtime: OnceLock::new(),
        });
        let waker = Waker::from(Arc::clone(&task_waker));
        Ok(Self { tasks: RefCell::new(Box::pin(tasks)), waker, task_waker, timer, epoll, runtime })
    }

    /// File descriptor that is readable when a turn has work to do.
    pub(crate) fn epoll(&self) -> RawFd {
        self.epoll
    }

    /// Timer of this event loop.
    pub(crate) fn timer(&self) -> &Timer {
        &self.timer
    }

    /// Runs pending work, and returns whether to run another turn at once.
    ///
    /// `start` runs after events were polled; tasks that it spawns start in this turn.
    pub(crate) fn turn(&self, start: impl FnOnce(&LocalSet)) -> bool {
        let _inside = self.runtime.enter();
        self.task_waker.is_turning.store(true, Ordering::SeqCst);
        self.poll_events();
        start(&self.tasks.borrow());
        self.run_tasks();
        self.task_waker.is_turning.store(false, Ordering::SeqCst);
        // A wake-up since the last round did not reach the runtime.
        self.task_waker.is_woken.load(Ordering::SeqCst)
    }

    /// Runs turns until `done` returns a value. `start` runs first; with `poll_first`, after events were polled.
    pub(crate) fn run_until<T>(
        &self,
        poll_first: bool,
        start: impl FnOnce(&LocalSet),
        mut done: impl FnMut() -> Option<T>,
    ) -> T {
        let _inside = self.runtime.enter();
        self.task_waker.is_turning.store(true, Ordering::SeqCst);
        if poll_first {
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

    /// Polls the system for events, and wakes their tasks.
    fn poll_events(&self) {
        let mut polled = false;
        self.runtime.block_on(poll_fn(|cx| {
            self.task_waker.runtime.get_or_init(|| cx.waker().clone());
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            // tokio polls for events before it polls this future again.
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
    }

    /// Waits until a task can run.
    fn wait(&self) {
        self.runtime.block_on(poll_fn(|cx| {
            self.task_waker.runtime.get_or_init(|| cx.waker().clone());
            if self.task_waker.is_woken.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }));
    }

    /// Runs tasks until none can run, or [`MAX_POLL_ROUNDS`] have passed.
    ///
    /// Not within `block_on`: there, tokio defers the wakers of tasks that yield to its next poll for events, and drops
    /// them when `block_on` ends before. Outside they are woken at once.
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
        // Tasks hold sockets, which are deregistered from the epoll instance when they are dropped.
        let _inside = self.runtime.enter();
        *self.tasks.get_mut() = Box::pin(LocalSet::new());
    }
}

/// File descriptor of the epoll instance of the current runtime, which tokio does not expose: the one that watches an
/// eventfd registered here, by `/proc/self/fdinfo`.
///
/// The number of the eventfd is not enough. A child of a fork has the epoll instances of its parent as well, and these list
/// what the parent opens, by the parent's numbers. Nothing else is registered for priority data alone.
fn epoll_of_this_runtime() -> io::Result<RawFd> {
    let probe = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
    let number = probe.as_raw_fd().to_string();
    #[expect(deprecated, reason = "an OwnedFd stays open while it is registered; what replaces this is unsafe")]
    let _watched = AsyncFd::with_interest(probe, Interest::PRIORITY)?;
    for entry in std::fs::read_dir("/proc/self/fdinfo")? {
        let path = entry?.path();
        let Some(fd) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        // Another thread may have closed the descriptor meanwhile.
        let Ok(info) = std::fs::read_to_string(&path) else { continue };
        if info.lines().any(|line| watches_priority_of(&number, line)) {
            return Ok(fd);
        }
    }
    Err(io::Error::other("no epoll instance in /proc/self/fdinfo"))
}

/// Whether a line of an epoll instance's information, such as `tfd: 9 events: 80000002 data: 7f01`, is about the priority
/// data of the file descriptor with this number, and about no other readiness.
fn watches_priority_of(number: &str, line: &str) -> bool {
    let mut words = line.split_whitespace();
    let mut next = |name: &str| if words.next() == Some(name) { words.next() } else { None };
    let (watched, events) = (next("tfd:"), next("events:"));
    let events = events.and_then(|mask| u32::from_str_radix(mask, 16).ok()).map(EventFlags::from_bits_retain);
    let readiness = EventFlags::IN | EventFlags::OUT | EventFlags::PRI;
    watched == Some(number) && events.is_some_and(|events| events & readiness == EventFlags::PRI)
}

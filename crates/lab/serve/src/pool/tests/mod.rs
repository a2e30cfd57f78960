//! Tests of a pool with real threads: order, queue, cancellation.

mod threads;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use tokio::task::{LocalSet, yield_now};

use super::{JobError, JobFuture, PoolHandle, PoolJob, PoolOverflow, PoolShared, ThreadPool};
use weir_base::rng::SeededRng;
use weir_machine::lock::lock;

/// Job of a closure, brief or not.
struct TestJob {
    brief: bool,
    work: Box<dyn FnOnce() -> usize + Send>,
}

impl PoolJob for TestJob {
    type Output = usize;

    fn run(self) -> usize {
        (self.work)()
    }

    fn is_brief(&self) -> bool {
        self.brief
    }
}

/// Numbers of jobs in the queue, and in front of it.
fn lengths(shared: &PoolShared<TestJob>) -> (usize, usize) {
    let state = lock(&shared.state);
    (state.queued(), state.backlog())
}

fn brief(work: impl FnOnce() -> usize + Send + 'static) -> TestJob {
    TestJob { brief: true, work: Box::new(work) }
}

fn long(work: impl FnOnce() -> usize + Send + 'static) -> TestJob {
    TestJob { brief: false, work: Box::new(work) }
}

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

fn on_an_event_loop<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async { tokio::time::timeout(TEST_TIMEOUT, test).await.expect("in time") })
}

/// Yields to the event loop and the threads until the condition holds.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now().await;
    }
}

/// Job that runs until its gate opens, with flags for its start and end.
#[derive(Clone, Default)]
struct GatedJob {
    started: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl GatedJob {
    fn task(&self) -> (TestJob, Sender<()>) {
        let (open, opened) = channel();
        let Self { started, ended } = self.clone();
        let work = move || {
            started.store(true, Ordering::SeqCst);
            let _ = opened.recv();
            ended.store(true, Ordering::SeqCst);
            1
        };
        (long(work), open)
    }

    fn has_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

/// A job that has a thread until it is told to end.
async fn hold_a_thread(handle: &PoolHandle<TestJob>) -> (JobFuture<'_, TestJob>, Sender<()>) {
    let gated = GatedJob::default();
    let (task, open) = gated.task();
    let submitted = handle.submit(task);
    until(|| gated.has_started()).await;
    (submitted, open)
}

#[test]
fn jobs_start_in_order_of_submission() {
    for room in [1, 3, 20, usize::MAX] {
        let pool = ThreadPool::new(1, room, PoolOverflow::Wait).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        on_an_event_loop(async {
            let handle = pool.handle();
            let (first, open) = hold_a_thread(&handle).await;
            let submitted: Vec<_> = (0..500)
                .map(|n| {
                    let order = Arc::clone(&order);
                    let work = move || {
                        order.lock().unwrap().push(n);
                        n
                    };
                    handle.submit(if n % 7 < 5 { brief(work) } else { long(work) })
                })
                .collect();
            open.send(()).unwrap();
            assert_eq!(first.await, Ok(1));
            for (n, submitted) in submitted.into_iter().enumerate() {
                assert_eq!(submitted.await, Ok(n));
            }
        });
        assert_eq!(*order.lock().unwrap(), (0..500).collect::<Vec<_>>(), "room {room}");
    }
}

#[test]
fn jobs_wait_in_front_of_a_full_queue() {
    let pool = ThreadPool::new(1, 5, PoolOverflow::Wait).unwrap();
    let shared = Arc::clone(&pool.shared);
    on_an_event_loop(async {
        let handle = pool.handle();
        let (first, open) = hold_a_thread(&handle).await;
        let others: Vec<_> = (0..30).map(|n| handle.submit(brief(move || n))).collect();
        assert_eq!(lengths(&shared), (5, 25));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, other) in others.into_iter().enumerate() {
            assert_eq!(other.await, Ok(n));
        }
        assert_eq!(lengths(&shared), (0, 0));
    });
}

#[test]
fn all_threads_run_long_jobs() {
    let pool = ThreadPool::new(4, 2, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        for round in 0..200 {
            // None of the four can end before all have started.
            let barrier = Arc::new(Barrier::new(4));
            let mut submitted = Vec::new();
            for n in 0..8 {
                let barrier = Arc::clone(&barrier);
                submitted.push(handle.submit(match (n + round) % 2 {
                    0 => brief(|| 0),
                    _ => long(move || barrier.wait().is_leader().into()),
                }));
            }
            let mut leaders = 0;
            for submitted in submitted {
                leaders += submitted.await.unwrap();
            }
            assert_eq!(leaders, 1);
        }
    });
}

#[test]
fn a_brief_job_does_not_wait_for_a_long_one_behind_it() {
    let pool = ThreadPool::new(1, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        let (first, last) = (GatedJob::default(), GatedJob::default());
        let (task, open_first) = first.task();
        let first_submitted = handle.submit(task);
        let between = [handle.submit(brief(|| 2)), handle.submit(brief(|| 3))];
        let (task, open_last) = last.task();
        let last_submitted = handle.submit(task);
        open_first.send(()).unwrap();
        assert_eq!(first_submitted.await, Ok(1));
        for (n, submitted) in between.into_iter().enumerate() {
            assert_eq!(submitted.await, Ok(n + 2));
        }
        assert!(!last.has_ended());
        open_last.send(()).unwrap();
        assert_eq!(last_submitted.await, Ok(1));
    });
}

#[test]
fn no_job_is_lost_under_random_submissions_and_cancellations() {
    for (seed, (threads, room)) in [(1, 1), (2, 1), (3, 2), (3, 20), (8, 5)].into_iter().enumerate() {
        let pool = ThreadPool::new(threads, room, PoolOverflow::Wait).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        on_an_event_loop(async {
            let handle = pool.handle();
            let mut rng = SeededRng::new(seed as u64, 0);
            let mut below = |n: u64| rng.bits() % n;
            let mut wanted = 0;
            for _ in 0..2000 {
                let mut submitted = VecDeque::new();
                for n in 0..below(12) as usize {
                    let done = Arc::clone(&done);
                    let work = move || {
                        done.fetch_add(1, Ordering::SeqCst);
                        n
                    };
                    submitted.push_back((n, handle.submit(if below(3) > 0 { brief(work) } else { long(work) })));
                    if below(4) == 0 {
                        yield_now().await;
                    }
                    if below(5) == 0 {
                        submitted.pop_front();
                    }
                }
                for (n, submitted) in submitted {
                    if below(6) > 0 {
                        assert_eq!(submitted.await, Ok(n));
                        wanted += 1;
                    }
                }
            }
            let shared = &pool.shared;
            until(|| lock(&shared.state).busy == 0 && lock(&shared.state).queue.is_empty()).await;
            assert!(done.load(Ordering::SeqCst) >= wanted);
            let state = lock(&shared.state);
            assert_eq!(state.completed as usize, done.load(Ordering::SeqCst));
            assert!(state.cancelled > 0);
        });
    }
}

#[test]
fn a_cancelled_job_is_not_started() {
    let pool = ThreadPool::new(1, 2, PoolOverflow::Wait).unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let counting = |n| {
        let done = Arc::clone(&done);
        brief(move || {
            done.fetch_add(1, Ordering::SeqCst);
            n
        })
    };
    on_an_event_loop(async {
        let handle = pool.handle();
        let (first, open) = hold_a_thread(&handle).await;
        let mut submitted: Vec<_> = (0..6).map(|n| Some(handle.submit(counting(n)))).collect();
        // Cancels two in the queue and one in front of it; others move up.
        assert_eq!(lengths(&pool.shared), (2, 4));
        for n in [0, 1, 3] {
            submitted[n] = None;
        }
        assert_eq!(lengths(&pool.shared), (2, 1));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, submitted) in submitted.into_iter().enumerate() {
            if let Some(submitted) = submitted {
                assert_eq!(submitted.await, Ok(n));
            }
        }
        assert_eq!((done.load(Ordering::SeqCst), lock(&pool.shared.state).cancelled), (3, 3));
    });
}

#[test]
fn a_late_result_does_not_reach_a_reused_slot() {
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        let (submitted, open_late) = hold_a_thread(&handle).await;
        drop(submitted);
        // Reuses the slot of the dropped future.
        let (submitted, open_next) = hold_a_thread(&handle).await;
        let mut submitted = Box::pin(submitted);
        open_late.send(()).unwrap();
        until(|| lock(&pool.shared.state).completed == 1).await;
        yield_now().await;
        yield_now().await;
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(submitted.as_mut().poll(cx).is_pending())).await);
        open_next.send(()).unwrap();
        assert_eq!(submitted.await, Ok(1));
    });
}

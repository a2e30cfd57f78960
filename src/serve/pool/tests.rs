//! What a pool promises, with real threads.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use tokio::task::{LocalSet, yield_now};

use super::{JobError, PoolJob, PoolOverflow, ThreadPool};
use crate::decide::dice::Dice;

/// A job as a test needs it.
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

/// Lets the event loop and the threads go on until it is so.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now().await;
    }
}

/// A job that goes on until its gate is opened, and says when it has begun and ended.
#[derive(Clone, Default)]
struct GatedJob {
    begun: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl GatedJob {
    fn task(&self) -> (TestJob, Sender<()>) {
        let (open, opened) = channel();
        let Self { begun, ended } = self.clone();
        let work = move || {
            begun.store(true, Ordering::SeqCst);
            let _ = opened.recv();
            ended.store(true, Ordering::SeqCst);
            1
        };
        (long(work), open)
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

#[test]
fn jobs_begin_in_the_order_in_which_they_came() {
    for room in [1, 3, 20, usize::MAX] {
        let pool = ThreadPool::new(1, room, PoolOverflow::Wait).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        on_an_event_loop(async {
            let desk = pool.handle();
            let gated = GatedJob::default();
            let (first, open) = gated.task();
            let first = desk.submit(first);
            until(|| gated.has_begun()).await;
            let asked: Vec<_> = (0..500)
                .map(|n| {
                    let order = Arc::clone(&order);
                    let work = move || {
                        order.lock().unwrap().push(n);
                        n
                    };
                    desk.submit(if n % 7 < 5 { brief(work) } else { long(work) })
                })
                .collect();
            open.send(()).unwrap();
            assert_eq!(first.await, Ok(1));
            for (n, asked) in asked.into_iter().enumerate() {
                assert_eq!(asked.await, Ok(n));
            }
        });
        assert_eq!(*order.lock().unwrap(), (0..500).collect::<Vec<_>>(), "room {room}");
    }
}

#[test]
fn who_finds_the_queue_full_waits_in_front_of_it() {
    let pool = ThreadPool::new(1, 5, PoolOverflow::Wait).unwrap();
    let shared = Arc::clone(&pool.shared);
    let gated = GatedJob::default();
    on_an_event_loop(async {
        let desk = pool.handle();
        let (first, open) = gated.task();
        let first = desk.submit(first);
        until(|| gated.has_begun()).await;
        let others: Vec<_> = (0..30).map(|n| desk.submit(brief(move || n))).collect();
        assert_eq!(shared.lock().lengths(), (5, 25));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, other) in others.into_iter().enumerate() {
            assert_eq!(other.await, Ok(n));
        }
        assert_eq!(shared.lock().lengths(), (0, 0));
    });
}

#[test]
fn every_thread_takes_part_when_jobs_are_long() {
    let pool = ThreadPool::new(4, 2, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        for round in 0..200 {
            // None of four can end before all have begun, whatever is between them.
            let barrier = Arc::new(Barrier::new(4));
            let mut asked = Vec::new();
            for n in 0..8 {
                let barrier = Arc::clone(&barrier);
                asked.push(desk.submit(match (n + round) % 2 {
                    0 => brief(|| 0),
                    _ => long(move || barrier.wait().is_leader().into()),
                }));
            }
            let mut leaders = 0;
            for asked in asked {
                leaders += asked.await.unwrap();
            }
            assert_eq!(leaders, 1);
        }
    });
}

#[test]
fn a_brief_answer_does_not_wait_for_the_long_job_behind_it() {
    let pool = ThreadPool::new(1, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        let (first, last) = (GatedJob::default(), GatedJob::default());
        let (task, open_first) = first.task();
        let first_asked = desk.submit(task);
        let between = [desk.submit(brief(|| 2)), desk.submit(brief(|| 3))];
        let (task, open_last) = last.task();
        let last_asked = desk.submit(task);
        open_first.send(()).unwrap();
        assert_eq!(first_asked.await, Ok(1));
        for (n, asked) in between.into_iter().enumerate() {
            assert_eq!(asked.await, Ok(n + 2));
        }
        assert!(!last.has_ended());
        open_last.send(()).unwrap();
        assert_eq!(last_asked.await, Ok(1));
    });
}

#[test]
fn no_job_is_forgotten_whatever_comes_and_goes() {
    for (seed, (threads, room)) in [(1, 1), (2, 1), (3, 2), (3, 20), (8, 5)].into_iter().enumerate() {
        let pool = ThreadPool::new(threads, room, PoolOverflow::Wait).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        on_an_event_loop(async {
            let desk = pool.handle();
            let mut dice = Dice::new(seed as u64, 0);
            let mut below = |n: u64| dice.bits() % n;
            let mut wanted = 0;
            for _ in 0..2000 {
                let mut asked = VecDeque::new();
                for n in 0..below(12) as usize {
                    let done = Arc::clone(&done);
                    let work = move || {
                        done.fetch_add(1, Ordering::SeqCst);
                        n
                    };
                    asked.push_back((n, desk.submit(if below(3) > 0 { brief(work) } else { long(work) })));
                    if below(4) == 0 {
                        yield_now().await;
                    }
                    if below(5) == 0 {
                        asked.pop_front();
                    }
                }
                for (n, asked) in asked {
                    if below(6) > 0 {
                        assert_eq!(asked.await, Ok(n));
                        wanted += 1;
                    }
                }
            }
            let shared = &pool.shared;
            until(|| shared.lock().busy == 0 && shared.lock().queue.is_empty()).await;
            assert!(done.load(Ordering::SeqCst) >= wanted);
            let state = shared.lock();
            assert_eq!(state.completed as usize, done.load(Ordering::SeqCst));
            assert!(state.cancelled > 0);
        });
    }
}

#[test]
fn a_job_that_nobody_wants_any_more_is_not_begun() {
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
        let desk = pool.handle();
        let gated = GatedJob::default();
        let (first, open) = gated.task();
        let first = desk.submit(first);
        until(|| gated.has_begun()).await;
        let mut asked: Vec<_> = (0..6).map(|n| Some(desk.submit(counting(n)))).collect();
        // Two of the queue and one in front of it; one of the others moves up for each.
        assert_eq!(pool.shared.lock().lengths(), (2, 4));
        for n in [0, 1, 3] {
            asked[n] = None;
        }
        assert_eq!(pool.shared.lock().lengths(), (2, 1));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, asked) in asked.into_iter().enumerate() {
            if let Some(asked) = asked {
                assert_eq!(asked.await, Ok(n));
            }
        }
        assert_eq!((done.load(Ordering::SeqCst), pool.shared.lock().cancelled), (3, 3));
    });
}

#[test]
fn an_answer_that_comes_too_late_is_nobody_elses() {
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        let (late, next) = (GatedJob::default(), GatedJob::default());
        let (task, open_late) = late.task();
        let asked = desk.submit(task);
        until(|| late.has_begun()).await;
        drop(asked);
        // It has the place of the one that left.
        let (task, open_next) = next.task();
        let mut asked = Box::pin(desk.submit(task));
        until(|| next.has_begun()).await;
        open_late.send(()).unwrap();
        until(|| pool.shared.lock().completed == 1).await;
        yield_now().await;
        yield_now().await;
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
        open_next.send(()).unwrap();
        assert_eq!(asked.await, Ok(1));
    });
}

#[test]
fn a_job_that_panics_costs_no_thread() {
    let pool = ThreadPool::new(1, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        assert_eq!(desk.submit(long(|| panic!("on purpose"))).await, Err(JobError::Panicked));
        assert_eq!(desk.submit(brief(|| panic!("on purpose"))).await, Err(JobError::Panicked));
        assert_eq!(desk.submit(brief(|| 5)).await, Ok(5));
    });
}

#[test]
fn a_brief_job_needs_no_thread_if_one_is_free() {
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        let here = std::thread::current().id();
        let where_it_ran = Arc::new(Mutex::new(None));
        let task = || {
            let it_ran = Arc::clone(&where_it_ran);
            brief(move || {
                *it_ran.lock().unwrap() = Some(std::thread::current().id());
                0
            })
        };
        let gates = [GatedJob::default(), GatedJob::default()];
        let (first, open_first) = gates[0].task();
        let first = desk.submit(first);
        until(|| gates[0].has_begun()).await;
        assert_eq!(desk.submit(task()).await, Ok(0));
        assert_eq!(*where_it_ran.lock().unwrap(), Some(here));
        // With no thread free it waits its turn.
        let (second, open_second) = gates[1].task();
        let second = desk.submit(second);
        until(|| gates[1].has_begun()).await;
        *where_it_ran.lock().unwrap() = None;
        let third = desk.submit(task());
        assert_eq!(*where_it_ran.lock().unwrap(), None);
        for (asked, open) in [(first, open_first), (second, open_second)] {
            open.send(()).unwrap();
            assert_eq!(asked.await, Ok(1));
        }
        assert_eq!(third.await, Ok(0));
        assert!(where_it_ran.lock().unwrap().is_some_and(|thread| thread != here));
    });
}

#[test]
fn who_finds_the_queue_full_is_refused_if_that_is_asked_for() {
    let pool = ThreadPool::new(1, 2, PoolOverflow::Reject).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        let gated = GatedJob::default();
        let (first, open) = gated.task();
        let first = desk.submit(first);
        until(|| gated.has_begun()).await;
        let waiting = [desk.submit(long(|| 2)), desk.submit(brief(|| 2))];
        assert_eq!(desk.submit(long(|| 3)).await, Err(JobError::Rejected));
        assert_eq!(desk.submit(brief(|| 3)).await, Err(JobError::Rejected));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for asked in waiting {
            assert_eq!(asked.await, Ok(2));
        }
        assert_eq!(desk.submit(long(|| 4)).await, Ok(4));
        assert_eq!(pool.shared.lock().rejected, 2);
    });
}

#[test]
fn desks_of_several_event_loops_are_served_in_turn() {
    let pool = ThreadPool::new(2, 4, PoolOverflow::Wait).unwrap();
    std::thread::scope(|scope| {
        for desk in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                on_an_event_loop(async {
                    let asks = pool.handle();
                    for round in 0..300 {
                        let all: Vec<_> = (0..6).map(|n| asks.submit(long(move || desk * 100 + n))).collect();
                        for (n, asked) in all.into_iter().enumerate() {
                            if (n + round) % 5 > 0 {
                                assert_eq!(asked.await, Ok(desk * 100 + n));
                            }
                        }
                    }
                });
            });
        }
    });
    // Who left did not wait for a thread that had begun.
    while pool.shared.lock().busy > 0 {
        std::thread::yield_now();
    }
    let state = pool.shared.lock();
    assert_eq!((state.completed + state.cancelled, state.queue.len()), (4 * 300 * 6, 0));
}

#[test]
fn a_pool_has_rested_when_the_last_job_has_ended() {
    let gated = GatedJob::default();
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let desk = pool.handle();
        desk.wait_idle().await;
        let (task, open) = gated.task();
        let asked = desk.submit(task);
        until(|| gated.has_begun()).await;
        drop(asked);
        let mut rest = Box::pin(desk.wait_idle());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(rest.as_mut().poll(cx).is_pending())).await);
        open.send(()).unwrap();
        rest.await;
        assert!(gated.has_ended());
    });
}

#[test]
fn the_end_of_a_pool_waits_for_no_job() {
    let gated = GatedJob::default();
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    let open = on_an_event_loop(async {
        let desk = pool.handle();
        let (task, open) = gated.task();
        let asked = desk.submit(task);
        until(|| gated.has_begun()).await;
        drop(asked);
        open
    });
    drop(pool);
    assert!(!gated.has_ended());
    drop(open);
}

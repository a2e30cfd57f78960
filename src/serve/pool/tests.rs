//! What a pool promises, with real threads.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use tokio::task::{LocalSet, spawn_local, yield_now};

use super::state::{State, Waiting};
use super::{Broken, Desk, Job, Pool};
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::machine::clock::Clock;

/// A job as a test needs it.
struct Task {
    brief: bool,
    work: Box<dyn FnOnce() -> usize + Send>,
}

impl Job for Task {
    type Answer = usize;

    fn run(self) -> usize {
        (self.work)()
    }

    fn is_brief(&self) -> bool {
        self.brief
    }
}

fn brief(work: impl FnOnce() -> usize + Send + 'static) -> Task {
    Task { brief: true, work: Box::new(work) }
}

fn long(work: impl FnOnce() -> usize + Send + 'static) -> Task {
    Task { brief: false, work: Box::new(work) }
}

const PATIENCE: Duration = Duration::from_secs(30);

fn on_an_event_loop<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await.expect("in time") })
}

/// Lets the event loop and the threads go on until it is so.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now().await;
    }
}

/// A job that goes on until its gate is opened, and says when it has begun and ended.
#[derive(Clone, Default)]
struct Gated {
    begun: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Gated {
    fn task(&self) -> (Task, Sender<()>) {
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
        let pool = Pool::new(1, room, PATIENCE).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        on_an_event_loop(async {
            let desk = pool.desk().unwrap();
            let asked: Vec<_> = (0..500)
                .map(|n| {
                    let order = Arc::clone(&order);
                    let work = move || {
                        order.lock().unwrap().push(n);
                        n
                    };
                    desk.ask(if n % 7 < 5 { brief(work) } else { long(work) })
                })
                .collect();
            for (n, asked) in asked.into_iter().enumerate() {
                assert_eq!(asked.await, Ok(n));
            }
        });
        assert_eq!(*order.lock().unwrap(), (0..500).collect::<Vec<_>>(), "room {room}");
    }
}

#[test]
fn no_more_wait_in_the_queue_than_it_has_room_for() {
    let pool = Pool::new(1, 5, PATIENCE).unwrap();
    let shared = Arc::clone(&pool.shared);
    let gated = Gated::default();
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        let (first, open) = gated.task();
        let first = desk.ask(first);
        until(|| gated.has_begun()).await;
        let others: Vec<_> = (0..30).map(|n| desk.ask(brief(move || n))).collect();
        until(|| shared.lock().backlog == 25).await;
        assert_eq!(shared.lock().queue.len(), 5);
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, other) in others.into_iter().enumerate() {
            assert_eq!(other.await, Ok(n));
        }
        let state = shared.lock();
        assert_eq!((state.queue.len(), state.backlog), (0, 0));
    });
}

#[test]
fn every_thread_takes_part_when_jobs_are_long() {
    let pool = Pool::new(4, 2, PATIENCE).unwrap();
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        for round in 0..200 {
            // None of four can end before all have begun, whatever is between them.
            let barrier = Arc::new(Barrier::new(4));
            let mut asked = Vec::new();
            for n in 0..8 {
                let barrier = Arc::clone(&barrier);
                asked.push(desk.ask(match (n + round) % 2 {
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
    let pool = Pool::new(1, 9, PATIENCE).unwrap();
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        let (first, last) = (Gated::default(), Gated::default());
        let (task, open_first) = first.task();
        let first_asked = desk.ask(task);
        let between = [desk.ask(brief(|| 2)), desk.ask(brief(|| 3))];
        let (task, open_last) = last.task();
        let last_asked = desk.ask(task);
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
        let pool = Pool::new(threads, room, PATIENCE).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        on_an_event_loop(async {
            let desk = pool.desk().unwrap();
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
                    asked.push_back((n, desk.ask(if below(3) > 0 { brief(work) } else { long(work) })));
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
            assert_eq!(state.did as usize, done.load(Ordering::SeqCst));
            assert!(state.given_up > 0 && state.backlog == 0 && state.at_length == 0);
        });
    }
}

#[test]
fn a_job_that_nobody_wants_any_more_is_not_begun() {
    let pool = Pool::new(1, 2, PATIENCE).unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let counting = |n| {
        let done = Arc::clone(&done);
        brief(move || {
            done.fetch_add(1, Ordering::SeqCst);
            n
        })
    };
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        let gated = Gated::default();
        let (first, open) = gated.task();
        let first = desk.ask(first);
        until(|| gated.has_begun()).await;
        let mut asked: Vec<_> = (0..6).map(|n| Some(desk.ask(counting(n)))).collect();
        until(|| pool.shared.lock().backlog == 4).await;
        // Two of the queue and one of the backlog; one of the others moves up for each.
        for n in [0, 1, 3] {
            asked[n] = None;
        }
        until(|| pool.shared.lock().backlog == 1).await;
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for (n, asked) in asked.into_iter().enumerate() {
            if let Some(asked) = asked {
                assert_eq!(asked.await, Ok(n));
            }
        }
        assert_eq!((done.load(Ordering::SeqCst), pool.shared.lock().given_up), (3, 3));
    });
}

#[test]
fn an_answer_that_comes_too_late_is_nobody_elses() {
    let pool = Pool::new(2, 9, PATIENCE).unwrap();
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        let (late, next) = (Gated::default(), Gated::default());
        let (task, open_late) = late.task();
        let asked = desk.ask(task);
        until(|| late.has_begun()).await;
        drop(asked);
        // It has the place of the one that left.
        let (task, open_next) = next.task();
        let mut asked = Box::pin(desk.ask(task));
        until(|| next.has_begun()).await;
        open_late.send(()).unwrap();
        until(|| pool.shared.lock().did == 1 && pool.shared.lock().done.is_empty()).await;
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
        open_next.send(()).unwrap();
        assert_eq!(asked.await, Ok(1));
    });
}

#[test]
fn a_job_that_panics_costs_no_thread() {
    let pool = Pool::new(1, 9, PATIENCE).unwrap();
    on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        assert_eq!(desk.ask(long(|| panic!("on purpose"))).await, Err(Broken));
        assert_eq!(desk.ask(brief(|| panic!("on purpose"))).await, Err(Broken));
        assert_eq!(desk.ask(brief(|| 5)).await, Ok(5));
    });
}

#[test]
fn the_end_of_a_pool_waits_for_a_job_that_has_begun() {
    let gated = Gated::default();
    let pool = Pool::new(2, 9, PATIENCE).unwrap();
    let (open, opener) = on_an_event_loop(async {
        let desk = pool.desk().unwrap();
        let (task, open) = gated.task();
        let asked = desk.ask(task);
        until(|| gated.has_begun()).await;
        drop(asked);
        let shared = Arc::clone(&pool.shared);
        (open, move || while !shared.lock().closed {})
    });
    let opener = std::thread::spawn(move || {
        opener();
        open.send(()).unwrap();
    });
    drop(pool);
    assert!(gated.has_ended());
    opener.join().unwrap();
}

#[test]
fn the_end_of_a_pool_waits_for_nobody_who_has_no_patience_left() {
    // Either there is none, or all of it was spent while somebody waited for the answer.
    for (patience, somebody_waits) in [(Duration::ZERO, false), (2 * PATIENCE, true)] {
        let gated = Gated::default();
        let pool = Arc::new(Pool::new(2, 9, patience).unwrap());
        let open = on_an_event_loop(async {
            let desk: Desk<Task> = pool.desk().unwrap();
            let (task, open) = gated.task();
            if somebody_waits {
                spawn_local(async move { desk.ask(task).await });
                until(|| gated.has_begun()).await;
            } else {
                let asked = desk.ask(task);
                until(|| gated.has_begun()).await;
                drop(asked);
            }
            open
        });
        let clock = Clock::starting_in(Nanos::ZERO);
        drop(pool);
        assert!(clock.now() < PATIENCE.into() && !gated.has_ended());
        drop(open);
    }
}

#[test]
fn a_pool_has_one_desk() {
    let pool = Pool::<Task>::new(1, 1, PATIENCE).unwrap();
    on_an_event_loop(async {
        let _desk = pool.desk().unwrap();
        assert!(pool.desk().is_err());
    });
}

#[test]
fn no_more_threads_are_called_than_there_is_work_for() {
    let mut state = State::<Task>::new(100);
    (state.threads, state.sleeping) = (4, 4);
    let mut tickets = 0;
    let mut bring = |state: &mut State<Task>, briefs: usize, longs: usize| {
        let jobs = (0..briefs + longs).map(|n| {
            tickets += 1;
            let job = if n < briefs { brief(|| 0) } else { long(|| 0) };
            Waiting { ticket: tickets, place: 0, brief: job.brief, job }
        });
        state.take_in(&mut jobs.collect())
    };
    assert_eq!(bring(&mut state, 10, 0), 1, "one for all that is brief");
    assert_eq!(bring(&mut state, 10, 0), 0, "it is on its way");
    assert_eq!(bring(&mut state, 0, 1), 1, "one more for a long one");
    // The first thread does all that is brief; the second begins with the long one.
    for _ in 0..20 {
        state.begin().unwrap();
        state.end(true);
    }
    assert!(!state.begin().unwrap().brief);
    assert_eq!(bring(&mut state, 1, 0), 0, "the first is awake");
    assert_eq!(bring(&mut state, 0, 9), 2, "all that there are");
    assert_eq!(bring(&mut state, 0, 9), 0, "nobody sleeps");
}

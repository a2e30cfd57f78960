//! Tests of threads: panics, brief jobs, overflow, several event loops, idle and drop.

use super::*;
use weir_machine::lock::lock;

#[test]
fn a_panic_does_not_end_the_thread() {
    let pool = ThreadPool::new(1, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        assert_eq!(handle.submit(long(|| panic!("on purpose"))).await, Err(JobError::Panicked));
        assert_eq!(handle.submit(brief(|| panic!("on purpose"))).await, Err(JobError::Panicked));
        assert_eq!(handle.submit(brief(|| 5)).await, Ok(5));
    });
}

#[test]
fn a_brief_job_needs_no_thread_if_one_is_free() {
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        let here = std::thread::current().id();
        let where_it_ran = Arc::new(Mutex::new(None));
        let task = || {
            let it_ran = Arc::clone(&where_it_ran);
            brief(move || {
                *it_ran.lock().unwrap() = Some(std::thread::current().id());
                0
            })
        };
        let (first, open_first) = hold_a_thread(&handle).await;
        assert_eq!(handle.submit(task()).await, Ok(0));
        assert_eq!(*where_it_ran.lock().unwrap(), Some(here));
        // Without a free thread it queues.
        let (second, open_second) = hold_a_thread(&handle).await;
        *where_it_ran.lock().unwrap() = None;
        let third = handle.submit(task());
        assert_eq!(*where_it_ran.lock().unwrap(), None);
        for (submitted, open) in [(first, open_first), (second, open_second)] {
            open.send(()).unwrap();
            assert_eq!(submitted.await, Ok(1));
        }
        assert_eq!(third.await, Ok(0));
        assert!(where_it_ran.lock().unwrap().is_some_and(|thread| thread != here));
    });
}

#[test]
fn a_full_queue_rejects_with_overflow_reject() {
    let pool = ThreadPool::new(1, 2, PoolOverflow::Reject).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        let (first, open) = hold_a_thread(&handle).await;
        let waiting = [handle.submit(long(|| 2)), handle.submit(brief(|| 2))];
        assert_eq!(handle.submit(long(|| 3)).await, Err(JobError::Rejected));
        assert_eq!(handle.submit(brief(|| 3)).await, Err(JobError::Rejected));
        open.send(()).unwrap();
        assert_eq!(first.await, Ok(1));
        for submitted in waiting {
            assert_eq!(submitted.await, Ok(2));
        }
        assert_eq!(handle.submit(long(|| 4)).await, Ok(4));
        assert_eq!(lock(&pool.shared.state).rejected, 2);
    });
}

#[test]
fn several_event_loops_share_a_pool() {
    let pool = ThreadPool::new(2, 4, PoolOverflow::Wait).unwrap();
    std::thread::scope(|scope| {
        for handle in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                on_an_event_loop(async {
                    let asks = pool.handle();
                    for round in 0..300 {
                        let all: Vec<_> = (0..6).map(|n| asks.submit(long(move || handle * 100 + n))).collect();
                        for (n, submitted) in all.into_iter().enumerate() {
                            if (n + round) % 5 > 0 {
                                assert_eq!(submitted.await, Ok(handle * 100 + n));
                            }
                        }
                    }
                });
            });
        }
    });
    // Dropped futures do not wait for jobs that have started.
    while lock(&pool.shared.state).busy > 0 {
        std::thread::yield_now();
    }
    let state = lock(&pool.shared.state);
    assert_eq!((state.completed + state.cancelled, state.queue.len()), (4 * 300 * 6, 0));
}

#[test]
fn a_pool_is_idle_when_the_last_job_has_ended() {
    let gated = GatedJob::default();
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    on_an_event_loop(async {
        let handle = pool.handle();
        handle.wait_idle().await;
        let (task, open) = gated.task();
        let submitted = handle.submit(task);
        until(|| gated.has_started()).await;
        drop(submitted);
        let mut idle = Box::pin(handle.wait_idle());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(idle.as_mut().poll(cx).is_pending())).await);
        open.send(()).unwrap();
        idle.await;
        assert!(gated.has_ended());
    });
}

#[test]
fn dropping_a_pool_waits_for_no_job() {
    let gated = GatedJob::default();
    let pool = ThreadPool::new(2, 9, PoolOverflow::Wait).unwrap();
    let open = on_an_event_loop(async {
        let handle = pool.handle();
        let (task, open) = gated.task();
        let submitted = handle.submit(task);
        until(|| gated.has_started()).await;
        drop(submitted);
        open
    });
    drop(pool);
    assert!(!gated.has_ended());
    drop(open);
}

//! Work that is shared among the cores of the machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::cores;

/// Interval at which `go_on` is called.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Results of `run` for each job, in the order of the jobs, one job per core at a time. Once `go_on`, which is called 20
/// times per second, returns false, no further job begins, and the results so far are returned.
pub fn parallel<J: Sync, R: Send>(jobs: &[J], run: impl Fn(&J) -> R + Sync, go_on: &mut dyn FnMut() -> bool) -> Vec<R> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = |results: &Sender<(usize, R)>| {
        while !stop.load(Relaxed) {
            let at = next.fetch_add(1, Relaxed);
            let Some(job) = jobs.get(at) else { break };
            // The receiver outlives all senders.
            let _ = results.send((at, run(job)));
        }
    };
    let mut done = Vec::new();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..(cores() as usize).min(jobs.len()) {
            let (worker, sender) = (&worker, sender.clone());
            scope.spawn(move || worker(&sender));
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok(one) => done.push(one),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !go_on() {
                stop.store(true, Relaxed);
            }
        }
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_jobs_and_end_early_on_request() {
        let jobs: Vec<u32> = (0..100).collect();
        assert_eq!(parallel(&jobs, |job| job * 2, &mut || true), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        assert!(parallel(&[] as &[u32], |job| *job, &mut || true).is_empty());
        let few = parallel(&jobs, |job| *job, &mut || false);
        assert!(few.iter().zip(&jobs).all(|(one, other)| one == other), "{few:?}");
    }
}

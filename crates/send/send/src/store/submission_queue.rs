//! Batches that wait for room in the queue: first in, first out, in parts if necessary.

use std::collections::VecDeque;

use super::ticket::ReplySender;
use super::{Receipt, StoreError};
use crate::job::Job;

/// Submitted batch.
#[derive(Debug)]
pub(super) struct SubmitBatch {
    jobs: Vec<Job>,
    pub(super) receipts: Vec<Receipt>,
    /// Number of its jobs that are durable.
    durable_jobs: usize,
    reply: ReplySender<Vec<Receipt>>,
}

/// Outcome of the submission of one job.
pub(super) enum SubmitResult {
    Admitted(Receipt),
    QueueFull,
    TooLarge { bytes: u64, most_bytes: u64 },
}

impl SubmitBatch {
    pub(super) fn new(jobs: Vec<Job>, reply: ReplySender<Vec<Receipt>>) -> Self {
        Self { receipts: Vec::with_capacity(jobs.len()), jobs, durable_jobs: 0, reply }
    }

    /// Next job of the batch.
    fn next(&self) -> Option<&Job> {
        self.jobs.get(self.receipts.len())
    }

    fn fail(self, error: StoreError) {
        let error = match error {
            StoreError::NoSpace(path, _) => StoreError::NoSpace(path, self.durable_jobs),
            other => other,
        };
        self.reply.send(Err(error));
    }
}

/// Batches in the order of submission.
#[derive(Debug, Default)]
pub(super) struct SubmitQueue {
    batches: VecDeque<SubmitBatch>,
    /// Number of batches visited since the last commit; the last one may be partly admitted.
    touched_batches: usize,
    /// Failed batches, with errors that are returned once the jobs before them are durable.
    too_large: Option<StoreError>,
}

impl SubmitQueue {
    pub(super) fn push(&mut self, batch: SubmitBatch) {
        self.batches.push_back(batch);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    /// Admits jobs of the first `batches` while there is room, at most `most`. Returns whether there may be room for
    /// more.
    ///
    /// # Errors
    /// Those of `enter`.
    pub(super) fn admit<E>(
        &mut self,
        batches: usize,
        most: usize,
        enter: impl FnMut(&Job) -> Result<SubmitResult, E>,
    ) -> Result<bool, E> {
        self.drop_abandoned();
        self.admit_jobs(batches, most, enter)
    }

    /// Dropped batches do not block others.
    fn drop_abandoned(&mut self) {
        self.batches.retain(|batch| !batch.reply.is_abandoned());
    }

    /// First `most` waiting jobs, for a store that reports their outcomes later ([`Self::finish_submit`]).
    pub(super) fn peek_jobs(&mut self, most: usize) -> impl Iterator<Item = &Job> {
        self.drop_abandoned();
        self.batches.iter().flat_map(|batch| batch.jobs.iter().skip(batch.receipts.len())).take(most)
    }

    /// Applies the outcomes of the jobs of [`Self::peek_jobs`], in that order; jobs after the last outcome wait on.
    pub(super) fn finish_submit(&mut self, mut entrances: impl Iterator<Item = SubmitResult>) {
        // Infallible: each job is either admitted or waits on.
        let _ = self.admit_jobs(usize::MAX, usize::MAX, |_| {
            Ok::<_, StoreError>(entrances.next().unwrap_or(SubmitResult::QueueFull))
        });
        self.commit();
    }

    fn admit_jobs<E>(
        &mut self,
        batches: usize,
        mut most: usize,
        mut enter: impl FnMut(&Job) -> Result<SubmitResult, E>,
    ) -> Result<bool, E> {
        self.touched_batches = 0;
        for batch in self.batches.iter_mut().take(batches) {
            self.touched_batches += 1;
            while let Some(job) = batch.next() {
                if most == 0 {
                    return Ok(true);
                }
                most -= 1;
                match enter(job)? {
                    SubmitResult::Admitted(receipt) => batch.receipts.push(receipt),
                    SubmitResult::QueueFull => return Ok(false),
                    SubmitResult::TooLarge { bytes, most_bytes } => {
                        let index = batch.receipts.len();
                        self.too_large = Some(StoreError::TooLarge { index, bytes, max_bytes: most_bytes });
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Completes batches whose jobs are durable.
    pub(super) fn commit(&mut self) {
        for _ in 0..std::mem::take(&mut self.touched_batches) {
            let Some(batch) = self.batches.front_mut() else { break };
            batch.durable_jobs = batch.receipts.len();
            if batch.next().is_some() {
                break;
            }
            if let Some(batch) = self.batches.pop_front() {
                batch.reply.send(Ok(batch.receipts));
            }
        }
        if let Some(error) = self.too_large.take() {
            self.fail_first(error);
        }
    }

    /// Undoes admissions of a failed transaction.
    pub(super) fn roll_back(&mut self) {
        self.too_large = None;
        for batch in self.batches.iter_mut().take(std::mem::take(&mut self.touched_batches)) {
            batch.receipts.truncate(batch.durable_jobs);
        }
    }

    /// Fails the first batch.
    pub(super) fn fail_first(&mut self, error: StoreError) {
        if let Some(batch) = self.batches.pop_front() {
            batch.fail(error);
        }
    }

    pub(super) fn fail_all(&mut self, error: &StoreError) {
        self.roll_back();
        for batch in self.batches.drain(..) {
            batch.fail(error.clone());
        }
    }
}

//! Changes of jobs by `weir send edit`, `retry` and `purge`.

use rusqlite::params;

use super::super::row::{headers_text, to_signed};
use super::{TableWriter, TextOrBlob, WriteResult};
use crate::job::{Job, JobEdit, JobEntry, UnixMs};
use crate::state::State;
use crate::store::{JobLane, audit_reason};

impl TableWriter<'_> {
    pub(in crate::store::sqlite) fn edit(&mut self, number: u64, edit: &JobEdit, now: UnixMs) -> WriteResult<bool> {
        let Some((mut entry, before)) = self.entry(number)? else { return Ok(false) };
        let state = entry.status.state;
        if !state.is_editable() {
            return Ok(false);
        }
        edit.clone().apply(&mut entry.job);
        let Job { request, expires_at: expires, priority, weight, key_hint, .. } = &entry.job;
        let bytes = entry.job.bytes();
        self.sql.edit_job.execute(params![
            to_signed(number),
            audit_reason::EDITED,
            now.0,
            expires.map(|at| at.0),
            priority,
            self.order.rank(*expires),
            weight,
            key_hint.as_deref().unwrap_or_default(),
            to_signed(bytes),
            JobLane::of(&entry.job).to_text(),
        ])?;
        self.sql.edit_request.execute(params![
            to_signed(number),
            request.method,
            request.url,
            headers_text(&request.headers),
            TextOrBlob(&request.body),
            request.templates.to_text(),
        ])?;
        self.add_event(number, state, now, audit_reason::EDITED, None)?;
        self.counts.remove(state, before);
        self.counts.add(state, bytes);
        self.arrival_count += u64::from(state == State::Queued);
        Ok(true)
    }

    pub(in crate::store::sqlite) fn retry(
        &mut self,
        entry: &JobEntry,
        bytes: u64,
        expires: Option<UnixMs>,
        now: UnixMs,
    ) -> WriteResult<()> {
        let expires = expires.or(entry.job.expires_at);
        let (number, rank) = (to_signed(entry.number), self.order.rank(expires));
        self.sql.retry.execute(params![number, audit_reason::REQUEUED_BY_HAND, now.0, expires.map(|at| at.0), rank])?;
        self.add_event(entry.number, State::Queued, now, audit_reason::REQUEUED_BY_HAND, None)?;
        self.counts.shift(entry.status.state, State::Queued, bytes);
        self.arrival_count += 1;
        Ok(())
    }

    pub(in crate::store::sqlite) fn delete(&mut self, entry: &JobEntry, bytes: u64) -> WriteResult<()> {
        for statement in &mut self.sql.delete_job {
            statement.execute([to_signed(entry.number)])?;
        }
        self.counts.remove(entry.status.state, bytes);
        Ok(())
    }
}

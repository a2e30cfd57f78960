//! Queries of the tables.

use rusqlite::{Connection, OptionalExtension};

use super::row::{self, SELECT_ENTRY, to_signed};
use super::rows::read_tally;
use super::statements::NEXT_LANE;
use crate::job::{JobDetail, JobEntry, StoredResponse, UnixMs};
use crate::store::{JobCounts, JobFilter, JobLane, JobSelector, KeyUsage, StoredKeyState};

type ReadResult<T> = rusqlite::Result<T>;

/// Queries, on any connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableReader<'c>(pub(super) &'c Connection);

impl TableReader<'_> {
    pub(super) fn counts(&self) -> ReadResult<JobCounts> {
        read_tally(&mut self.0.prepare("SELECT state, jobs, bytes FROM tally")?)
    }

    pub(super) fn queued_by_key(&self) -> ReadResult<Vec<(Option<String>, u64)>> {
        // From one lane to the next in the index: there are few lanes, and maybe a million jobs.
        let mut next = self.0.prepare(NEXT_LANE)?;
        let mut count = self.0.prepare("SELECT count(*) FROM job WHERE state = 'queued' AND lane = ?1")?;
        let mut lanes = Vec::new();
        let mut lane = Some(String::new());
        while let Some(this) = lane {
            let jobs = count.query_row([&this], |row| row::number(row, 0))?;
            lane = next.query_row([&this], |row| row.get(0))?;
            if jobs > 0 {
                lanes.push((JobLane::read(&this), jobs));
            }
        }
        Ok(JobLane::by_key(lanes.into_iter()))
    }

    pub(super) fn expiring(&self, before: UnixMs, most: usize) -> ReadResult<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM job WHERE expires_ms IS NOT NULL AND expires_ms < ?1 \
            AND (state = 'queued' OR state = 'retrying') LIMIT ?2)";
        let count = self.0.query_row(sql, [before.0, to_signed(most as u64)], |row| row::number(row, 0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Jobs that match the filter, by number, with their sizes.
    pub(super) fn page(&self, filter: &JobFilter, after: u64, most: usize) -> ReadResult<Vec<(JobEntry, u64)>> {
        let mut conditions = String::from("j.number > ?1");
        if !filter.states.is_empty() {
            let words: Vec<_> = filter.states.iter().map(|state| format!("'{state}'")).collect();
            conditions += &format!(" AND j.state IN ({})", words.join(", "));
        }
        if !filter.only.is_empty() {
            let numbers: ReadResult<Vec<_>> = filter.only.iter().map(|which| self.find_number(which)).collect();
            let numbers: Vec<_> = numbers?.into_iter().flatten().map(|number| number.to_string()).collect();
            conditions += &format!(" AND j.number IN ({})", numbers.join(", "));
        }
        if let Some(at) = filter.changed_before {
            conditions += &format!(" AND j.changed_ms < {at}");
        }
        let mut statement = self.0.prepare(&format!("{SELECT_ENTRY} WHERE {conditions} ORDER BY j.number"))?;
        let mut rows = statement.query([to_signed(after)])?;
        let mut found = Vec::new();
        while found.len() < most {
            let Some(row) = rows.next()? else { break };
            let (entry, bytes) = row::entry(row)?;
            if filter.matches(&entry) {
                found.push((entry, bytes));
            }
        }
        Ok(found)
    }

    pub(super) fn inspect(&self, which: &JobSelector) -> ReadResult<Option<JobDetail>> {
        let Some(number) = self.find_number(which)? else { return Ok(None) };
        let found = self.0.query_row(&format!("{SELECT_ENTRY} WHERE j.number = ?1"), [to_signed(number)], row::entry);
        let Some((entry, _)) = found.optional()? else { return Ok(None) };
        let response =
            self.0.query_row("SELECT headers, body FROM response WHERE number = ?1", [to_signed(number)], |row| {
                Ok(StoredResponse { headers: row::headers(row, 0)?, body: row::bytes(row, 1)? })
            });
        let mut events = self.0.prepare(
            "SELECT at_ms, state, reason, last_key, sent_ms, code FROM history WHERE number = ?1 ORDER BY nth",
        )?;
        let history: ReadResult<Vec<_>> = events.query_map([to_signed(number)], row::event)?.collect();
        Ok(Some(JobDetail { entry, response: response.optional()?, history: history? }))
    }

    pub(super) fn key_states(&self) -> ReadResult<Vec<StoredKeyState>> {
        let mut statement = self.0.prepare("SELECT name, note FROM key ORDER BY name")?;
        statement.query_map([], |row| Ok(StoredKeyState { key: row.get(0)?, state: row.get(1)? }))?.collect()
    }

    pub(super) fn key_usage(&self) -> ReadResult<Vec<KeyUsage>> {
        let mut statement = self.0.prepare(
            "SELECT last_key, max(sent_ms), count(*), sum(state = 'done') FROM job \
             WHERE last_key IS NOT NULL AND sent_ms IS NOT NULL GROUP BY last_key ORDER BY last_key",
        )?;
        let uses = statement.query_map([], |row| {
            let last = UnixMs(row.get(1)?);
            Ok(KeyUsage { key: row.get(0)?, last_used: last, jobs: row::number(row, 2)?, done: row::number(row, 3)? })
        });
        uses?.collect()
    }

    fn find_number(&self, which: &JobSelector) -> ReadResult<Option<u64>> {
        match which {
            JobSelector::Number(number) => Ok(Some(*number)),
            JobSelector::Id(id) => {
                self.0.query_row("SELECT number FROM job WHERE id = ?1", [id], |row| row::number(row, 0)).optional()
            }
        }
    }
}

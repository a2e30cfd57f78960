//! What is read of the tables.

use rusqlite::{Connection, OptionalExtension};

use super::row::{self, ENTRY, signed};
use super::rows::read_tally;
use super::statements::NEXT_LANE;
use crate::send::job::{Answer, Detail, Entry, UnixMs};
use crate::send::store::{Counts, Filter, KeyNote, KeyUse, Lane, Which};

type Outcome<T> = rusqlite::Result<T>;

/// Reads by any connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'c>(pub(super) &'c Connection);

impl Reading<'_> {
    pub(super) fn counts(&self) -> Outcome<Counts> {
        read_tally(&mut self.0.prepare("SELECT state, jobs, bytes FROM tally")?)
    }

    pub(super) fn hints(&self) -> Outcome<Vec<(Option<String>, u64)>> {
        // From one lane to the next in the index: there are few of them, and maybe a million jobs.
        let mut next = self.0.prepare(NEXT_LANE)?;
        let mut count = self.0.prepare("SELECT count(*) FROM job WHERE state = 'queued' AND lane = ?1")?;
        let mut lanes = Vec::new();
        let mut lane = Some(String::new());
        while let Some(this) = lane {
            let jobs = count.query_row([&this], |row| row::number(row, 0))?;
            lane = next.query_row([&this], |row| row.get(0))?;
            if jobs > 0 {
                lanes.push((Lane::read(&this), jobs));
            }
        }
        Ok(Lane::by_key(lanes.into_iter()))
    }

    pub(super) fn expiring(&self, before: UnixMs, most: usize) -> Outcome<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM job WHERE expires_ms IS NOT NULL AND expires_ms < ?1 \
            AND (state = 'queued' OR state = 'dead') LIMIT ?2)";
        let count = self.0.query_row(sql, [before.0, signed(most as u64)], |row| row::number(row, 0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Jobs that the filter means, by number, with their sizes.
    pub(super) fn page(&self, filter: &Filter, after: u64, most: usize) -> Outcome<Vec<(Entry, u64)>> {
        let mut conditions = String::from("j.number > ?1");
        if !filter.states.is_empty() {
            let words: Vec<_> = filter.states.iter().map(|state| format!("'{state}'")).collect();
            conditions += &format!(" AND j.state IN ({})", words.join(", "));
        }
        if !filter.only.is_empty() {
            let numbers: Outcome<Vec<_>> = filter.only.iter().map(|which| self.number(which)).collect();
            let numbers: Vec<_> = numbers?.into_iter().flatten().map(|number| number.to_string()).collect();
            conditions += &format!(" AND j.number IN ({})", numbers.join(", "));
        }
        if let Some(at) = filter.changed_before {
            conditions += &format!(" AND j.changed_ms < {at}");
        }
        let mut statement = self.0.prepare(&format!("{ENTRY} WHERE {conditions} ORDER BY j.number"))?;
        let mut rows = statement.query([signed(after)])?;
        let mut found = Vec::new();
        while found.len() < most {
            let Some(row) = rows.next()? else { break };
            let (entry, bytes) = row::entry(row)?;
            if filter.fits(&entry) {
                found.push((entry, bytes));
            }
        }
        Ok(found)
    }

    pub(super) fn inspect(&self, which: &Which) -> Outcome<Option<Detail>> {
        let Some(number) = self.number(which)? else { return Ok(None) };
        let found = self.0.query_row(&format!("{ENTRY} WHERE j.number = ?1"), [signed(number)], row::entry);
        let Some((entry, _)) = found.optional()? else { return Ok(None) };
        let answer = self.0.query_row("SELECT headers, body FROM answer WHERE number = ?1", [signed(number)], |row| {
            Ok(Answer { headers: row::headers(row, 0)?, body: row::bytes(row, 1)? })
        });
        let mut events = self
            .0
            .prepare("SELECT at_ms, state, reason, key, sent_ms, code FROM history WHERE number = ?1 ORDER BY nth")?;
        let history: Outcome<Vec<_>> = events.query_map([signed(number)], row::event)?.collect();
        Ok(Some(Detail { entry, answer: answer.optional()?, history: history? }))
    }

    pub(super) fn keys(&self) -> Outcome<Vec<KeyNote>> {
        let mut statement = self.0.prepare("SELECT name, note FROM key ORDER BY name")?;
        statement.query_map([], |row| Ok(KeyNote { key: row.get(0)?, note: row.get(1)? }))?.collect()
    }

    pub(super) fn key_uses(&self) -> Outcome<Vec<KeyUse>> {
        let mut statement = self.0.prepare(
            "SELECT key, max(sent_ms), count(*), sum(state = 'done') FROM job \
             WHERE key IS NOT NULL AND sent_ms IS NOT NULL GROUP BY key ORDER BY key",
        )?;
        let uses = statement.query_map([], |row| {
            let last = UnixMs(row.get(1)?);
            Ok(KeyUse { key: row.get(0)?, last, jobs: row::number(row, 2)?, done: row::number(row, 3)? })
        });
        uses?.collect()
    }

    fn number(&self, which: &Which) -> Outcome<Option<u64>> {
        match which {
            Which::Number(number) => Ok(Some(*number)),
            Which::Id(id) => {
                self.0.query_row("SELECT number FROM job WHERE id = ?1", [id], |row| row::number(row, 0)).optional()
            }
        }
    }
}

//! Prepared statements of the writer.

use rusqlite::{Connection, Statement};

use super::row::SELECT_ENTRY;

/// The next lane that has queued jobs, in the order of the index.
pub(super) const NEXT_LANE: &str = "SELECT min(lane) FROM job WHERE state = 'queued' AND lane > ?1";

pub(super) struct Statements<'c> {
    pub(super) tally: Statement<'c>,
    pub(super) set_tally: Statement<'c>,
    pub(super) last_number: Statement<'c>,
    pub(super) set_last_number: Statement<'c>,
    pub(super) session: Statement<'c>,
    pub(super) set_session: Statement<'c>,
    pub(super) by_id: Statement<'c>,
    pub(super) insert_job: Statement<'c>,
    pub(super) insert_request: Statement<'c>,
    pub(super) insert_response: Statement<'c>,
    pub(super) insert_event: Statement<'c>,
    pub(super) trim_events: Statement<'c>,
    pub(super) entry: Statement<'c>,
    pub(super) queued: Statement<'c>,
    pub(super) lease: Statement<'c>,
    pub(super) expiring: Statement<'c>,
    pub(super) due: Statement<'c>,
    pub(super) next_due: Statement<'c>,
    pub(super) next_lane: Statement<'c>,
    pub(super) leased: Statement<'c>,
    pub(super) set_sent: Statement<'c>,
    pub(super) set_state: Statement<'c>,
    pub(super) set_state_after_attempt: Statement<'c>,
    pub(super) requeue: Statement<'c>,
    pub(super) edit_job: Statement<'c>,
    pub(super) edit_request: Statement<'c>,
    pub(super) retry: Statement<'c>,
    pub(super) delete_job: [Statement<'c>; 4],
    pub(super) set_key_state: Statement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let sql = |text: &str| connection.prepare(text);
        Ok(Self {
            tally: sql("SELECT state, jobs, bytes FROM tally")?,
            set_tally: sql("UPDATE tally SET jobs = ?2, bytes = ?3 WHERE state = ?1")?,
            last_number: sql("SELECT value FROM meta WHERE name = 'last_number'")?,
            set_last_number: sql("UPDATE meta SET value = ?1 WHERE name = 'last_number'")?,
            session: sql("SELECT CAST(value AS TEXT) FROM meta WHERE name = 'session'")?,
            set_session: sql("INSERT OR REPLACE INTO meta VALUES ('session', ?1)")?,
            by_id: sql("SELECT number, state FROM job WHERE id = ?1")?,
            insert_job: sql(
                "INSERT INTO job VALUES (?1, ?2, 'queued', ?3, ?4, 0, 0, NULL, NULL, NULL, NULL, ?4, ?5, ?6, \
                 ?7, ?8, ?9, ?10, ?11)",
            )?,
            insert_request: sql("INSERT INTO request VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?,
            insert_response: sql("INSERT OR REPLACE INTO response VALUES (?1, ?2, ?3)")?,
            insert_event: sql("INSERT INTO history SELECT ?1, coalesce(max(nth), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7 \
                 FROM history WHERE number = ?1")?,
            trim_events: sql("DELETE FROM history WHERE number = ?1 AND nth <= \
                 (SELECT max(nth) FROM history WHERE number = ?1) - ?2")?,
            entry: sql(&format!("{SELECT_ENTRY} WHERE j.number = ?1"))?,
            queued: sql(&format!(
                "{SELECT_ENTRY} WHERE j.state = 'queued' AND j.lane = ?1 \
                 ORDER BY j.priority DESC, j.rank, j.number LIMIT ?2"
            ))?,
            next_lane: sql(NEXT_LANE)?,
            lease: sql("UPDATE job SET state = 'leased', reason = ?2, changed_ms = ?3, code = NULL, last_key = ?4, \
                 sent_ms = ?5 WHERE number = ?1")?,
            expiring: sql(&format!(
                "{SELECT_ENTRY} WHERE (j.state = 'queued' OR j.state = 'retrying') AND j.expires_ms <= ?1 \
                 ORDER BY j.expires_ms, j.number LIMIT ?2"
            ))?,
            due: sql("SELECT number, bytes FROM job WHERE state = 'retrying' AND retry_at_ms <= ?1 \
                 ORDER BY retry_at_ms, number LIMIT ?2")?,
            next_due: sql(
                "SELECT min(at) FROM (SELECT min(retry_at_ms) AS at FROM job WHERE state = 'retrying' UNION ALL \
                 SELECT min(expires_ms) FROM job WHERE expires_ms IS NOT NULL AND (state = 'queued' OR state = 'retrying'))",
            )?,
            leased: sql("SELECT number, bytes, sent_ms, changed_ms FROM job WHERE state = 'leased' LIMIT ?1")?,
            set_sent: sql("UPDATE job SET last_key = ?2, sent_ms = ?3 WHERE number = ?1 AND state = 'leased'")?,
            set_state: sql("UPDATE job SET state = ?2, reason = ?3, changed_ms = ?4, retry_at_ms = ?5, \
                 sent_ms = iif(?6, NULL, sent_ms), last_key = iif(?6, NULL, last_key), code = iif(?6, NULL, code) WHERE number = ?1")?,
            set_state_after_attempt: sql(
                "UPDATE job SET state = ?2, reason = ?3, changed_ms = ?4, retry_at_ms = ?5, last_key = ?6, \
                 sent_ms = ?7, code = ?8, attempts = attempts + 1 WHERE number = ?1",
            )?,
            requeue: sql("UPDATE job SET state = 'queued', reason = ?2, changed_ms = ?3, attempts = attempts + ?4, \
                 maybe_sent = max(maybe_sent, ?4), sent_ms = ?5 WHERE number = ?1")?,
            edit_job: sql("UPDATE job SET reason = ?2, changed_ms = ?3, expires_ms = ?4, priority = ?5, rank = ?6, \
                 weight = ?7, pinned_key = ?8, bytes = ?9, lane = ?10 WHERE number = ?1")?,
            edit_request: sql("UPDATE request SET method = ?2, url = ?3, headers = ?4, body = ?5, templates = ?6 \
                 WHERE number = ?1")?,
            retry: sql("UPDATE job SET state = 'queued', reason = ?2, changed_ms = ?3, expires_ms = ?4, rank = ?5, \
                 retry_at_ms = NULL, attempts = 0 WHERE number = ?1")?,
            delete_job: [
                sql("DELETE FROM history WHERE number = ?1")?,
                sql("DELETE FROM response WHERE number = ?1")?,
                sql("DELETE FROM request WHERE number = ?1")?,
                sql("DELETE FROM job WHERE number = ?1")?,
            ],
            set_key_state: sql("INSERT OR REPLACE INTO key VALUES (?1, ?2)")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::Statements;

    #[test]
    fn no_statement_of_a_job_sorts_or_builds_a_temporary_table() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        let sql = Statements::prepare(&connection).unwrap();
        let all = [
            sql.insert_job,
            sql.insert_request,
            sql.insert_response,
            sql.queued,
            sql.next_lane,
            sql.lease,
            sql.expiring,
            sql.due,
            sql.leased,
            sql.set_sent,
            sql.set_state,
            sql.set_state_after_attempt,
        ];
        for statement in all {
            let text = statement.expanded_sql().unwrap();
            let mut explain = connection.prepare(&format!("EXPLAIN {text}")).unwrap();
            let codes: Vec<String> =
                explain.query_map([], |row| row.get(1)).unwrap().collect::<Result<_, _>>().unwrap();
            assert!(codes.len() > 5, "{codes:?}");
            let dear = codes.iter().find(|code| ["OpenEphemeral", "SorterOpen", "Rewind"].contains(&code.as_str()));
            assert_eq!(dear, None, "{text}");
        }
    }
}

//! The store: a SQLite file.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::error::HistoryError;
use super::reference::RunReference;
use super::run_filter::RunFilter;
use super::stored_run::{RunNote, StoredRun};
use weir_machine::private_file::create_private;
use weir_measure::{LoadModel, Run};

/// `PRAGMA application_id` of a store: "weir" in ASCII.
const APPLICATION_ID: i64 = 0x7765_6972;
/// Version of the tables, in `PRAGMA user_version`.
const VERSION: i64 = 1;
/// Maximum time to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a run as JSON; a damaged store does not fill the memory.
const MAX_RUN_BYTES: u64 = 1 << 30;

const TABLES: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started_unix_s REAL NOT NULL,
        label TEXT NOT NULL,
        git_commit TEXT NOT NULL,
        plan TEXT NOT NULL,
        offered_per_s REAL,
        machine TEXT NOT NULL,
        trusted INTEGER NOT NULL,
        interrupted INTEGER NOT NULL,
        missed INTEGER NOT NULL,
        run BLOB NOT NULL
    ) STRICT;
    CREATE INDEX runs_by_start ON runs (started_unix_s, id);
    CREATE TABLE figures (
        run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (run_id, name)
    ) STRICT, WITHOUT ROWID;
";

/// Columns of a run, without the run itself.
const COLUMNS: &str =
    "id, started_unix_s, label, git_commit, plan, offered_per_s, machine, trusted, interrupted, missed";

/// Store of saved runs; several processes may save at the same time.
#[derive(Debug)]
pub struct RunStore {
    connection: Connection,
    path: PathBuf,
}

impl RunStore {
    /// Opens a store to save runs in; creates it, and its folder, if it is missing.
    ///
    /// # Errors
    /// The file is something else, or cannot be written.
    pub fn create(path: &Path) -> Result<Self, HistoryError> {
        let cannot = |error: &dyn std::fmt::Display| HistoryError::File(path.to_owned(), error.to_string());
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|error| cannot(&error))?;
        }
        // Its log and its journal get the mode of the store.
        create_private(path).map_err(|error| cannot(&error))?;
        let connection = Connection::open(path).map_err(|error| cannot(&error))?;
        Self::with(connection, path, true)
    }

    /// Opens an existing store to read it.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if !path.exists() {
            return Err(HistoryError::Missing(path.to_owned()));
        }
        // Not read-only: the log of a process that was killed must be played back.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)
            .map_err(|error| HistoryError::File(path.to_owned(), error.to_string()))?;
        Self::with(connection, path, false)
    }

    fn with(mut connection: Connection, path: &Path, create: bool) -> Result<Self, HistoryError> {
        let cannot = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => HistoryError::Other(path.to_owned()),
            _ => HistoryError::File(path.to_owned(), error.to_string()),
        };
        connection.busy_timeout(BUSY_TIMEOUT).map_err(cannot)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(cannot)?;
        // Two processes may create the same file: who comes second finds the tables.
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(cannot)?;
        let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = pragma("application_id").map_err(cannot)?;
        let version = pragma("user_version").map_err(cannot)?;
        let tables = "SELECT count(*) FROM sqlite_schema";
        let is_empty = transaction.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(cannot)? == 0;
        match (application, version) {
            (APPLICATION_ID, VERSION) => {}
            (APPLICATION_ID, other) => return Err(HistoryError::Version(path.to_owned(), other, VERSION)),
            _ if !is_empty || !create => return Err(HistoryError::Other(path.to_owned())),
            _ => {
                transaction.execute_batch(TABLES).map_err(cannot)?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(cannot)?;
                transaction.pragma_update(None, "user_version", VERSION).map_err(cannot)?;
            }
        }
        transaction.commit().map_err(cannot)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// Saves a run with its figures, and returns its number; all of it or nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&mut self, run: &Run, note: &RunNote, figures: &[(String, f64)]) -> Result<i64, HistoryError> {
        let path = self.path.clone();
        let cannot = |error: &dyn std::fmt::Display| HistoryError::File(path.clone(), error.to_string());
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(run.to_json().as_bytes()).map_err(|error| cannot(&error))?;
        let packed = packed.finish().map_err(|error| cannot(&error))?;
        let missed = run.slo.iter().filter(|objective| !objective.ok).count() as i64;
        let offered = (run.model == LoadModel::Open).then_some(run.rate_per_s.offered);
        let mut insert = || {
            let transaction = self.connection.transaction()?;
            transaction.execute(
                "INSERT INTO runs (started_unix_s, label, git_commit, plan, offered_per_s, machine, trusted, interrupted, \
                 missed, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    run.manifest.started_unix_s,
                    note.label,
                    note.commit,
                    StoredRun::plan_of(run),
                    offered,
                    StoredRun::machine_of(run),
                    run.trust.ok,
                    run.interrupted,
                    missed,
                    packed,
                ],
            )?;
            let id = transaction.last_insert_rowid();
            for (name, value) in figures.iter().filter(|(_, value)| value.is_finite()) {
                transaction.execute("INSERT INTO figures VALUES (?, ?, ?)", params![id, name, value])?;
            }
            transaction.commit()?;
            Ok(id)
        };
        insert().map_err(|error: rusqlite::Error| cannot(&error))
    }

    /// Runs that pass the filter, by their start.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<StoredRun>, HistoryError> {
        let query = format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM runs WHERE instr(plan, ?1) > 0 AND (?2 = '' OR label = ?2) \
             AND substr(git_commit, 1, length(?3)) = ?3 ORDER BY started_unix_s DESC, id DESC LIMIT ?4) \
             ORDER BY started_unix_s, id"
        );
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let read = || {
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map(params![filter.plan, filter.label, filter.commit, limit], stored_run)?;
            let mut runs = rows.collect::<Result<Vec<_>, _>>()?;
            let mut figures =
                self.connection.prepare("SELECT name, value FROM figures WHERE run_id = ? ORDER BY name")?;
            for run in &mut runs {
                let pairs = figures.query_map([run.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
                run.figures = pairs.collect::<Result<_, _>>()?;
            }
            Ok(runs)
        };
        read().map_err(|error: rusqlite::Error| self.cannot(&error))
    }

    /// Number of runs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn count(&self) -> Result<u64, HistoryError> {
        let count = self.connection.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0));
        count.map(|count| u64::try_from(count).unwrap_or(0)).map_err(|error| self.cannot(&error))
    }

    /// A run as a whole, and its number.
    ///
    /// # Errors
    /// There is none by this reference, or it is damaged.
    pub fn run(&self, reference: RunReference) -> Result<(i64, Run), HistoryError> {
        let (rest, value) = match reference {
            RunReference::Id(id) => ("WHERE id = ?", id),
            RunReference::Last(back) => {
                ("ORDER BY started_unix_s DESC, id DESC LIMIT 1 OFFSET ?", i64::try_from(back).unwrap_or(i64::MAX))
            }
        };
        let query = format!("SELECT id, run FROM runs {rest}");
        let found = self
            .connection
            .query_row(&query, [value], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .optional()
            .map_err(|error| self.cannot(&error))?;
        let Some((id, packed)) = found else { return Err(HistoryError::NoRun(reference.to_string(), self.count()?)) };
        let mut text = String::new();
        let damaged = |why: String| HistoryError::Damaged(id, why);
        GzDecoder::new(packed.as_slice())
            .take(MAX_RUN_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| damaged(error.to_string()))?;
        Ok((id, Run::from_json(&text).map_err(damaged)?))
    }

    /// Deletes all runs but the last ones, and returns how many it has deleted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, last: u64) -> Result<usize, HistoryError> {
        let last = i64::try_from(last).unwrap_or(i64::MAX);
        let delete = "DELETE FROM runs WHERE id NOT IN \
            (SELECT id FROM runs ORDER BY started_unix_s DESC, id DESC LIMIT ?)";
        let deleted = self.connection.execute(delete, [last]).map_err(|error| self.cannot(&error))?;
        self.connection.execute_batch("VACUUM").map_err(|error| self.cannot(&error))?;
        Ok(deleted)
    }

    fn cannot(&self, error: &rusqlite::Error) -> HistoryError {
        HistoryError::File(self.path.clone(), error.to_string())
    }
}

fn stored_run(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    Ok(StoredRun {
        id: row.get(0)?,
        started_unix_s: row.get(1)?,
        note: RunNote { label: row.get(2)?, commit: row.get(3)? },
        plan: row.get(4)?,
        offered_per_s: row.get(5)?,
        machine: row.get(6)?,
        is_trusted: row.get(7)?,
        is_interrupted: row.get(8)?,
        missed: u64::try_from(row.get::<_, i64>(9)?).unwrap_or(0),
        figures: Vec::new(),
    })
}

//! Opening a store's file: made if it is new, checked if it is there.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::{Options, locks};
use crate::send::job::JobRequest;
use crate::send::store::{JobLane, StoreError};

/// The version of the tables.
pub(crate) const SCHEMA_VERSION: u32 = 2;
/// `weir` in ASCII: `file` shows it, and no other program's database has it.
const APPLICATION_ID: i64 = 0x7765_6972;
/// How long a person in `sqlite3` may hold the file's lock before it is said to be locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// SQLite's cache of pages, in KiB: what bounds our memory, however long the queue.
const CACHE_KIB: u32 = 16 * 1024;
/// The write-ahead log goes back into the file when it has so many pages of 4 KiB.
const CHECKPOINT_PAGES: u32 = 8 * 1024;

/// The connection that writes.
pub(super) fn open_writer(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    if !options.create && !path.exists() {
        return Err(StoreError::NoStore(path.to_owned()));
    }
    check_head(path, options.create)?;
    let mut connection = connect(path)?;
    let kind: i64 = pragma(&connection, path, "application_id")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| store_error(path, &error))?;
    if kind != APPLICATION_ID && (kind != 0 || tables != 0) {
        return Err(StoreError::NotAStore(path.to_owned()));
    }
    configure(&connection, path, options)?;
    if kind == 0 {
        create_tables(&mut connection, options).map_err(|error| store_error(path, &error))?;
    }
    migrate(&mut connection).map_err(|error| store_error(path, &error))?;
    check_version(&connection, path)?;
    Ok(connection)
}

/// A connection that reads, beside the one that writes.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true).map_err(|error| store_error(path, &error))?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    locks::use_ofd_locks();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| store_error(path, &error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| store_error(path, &error))?;
    Ok(connection)
}

/// SQLite opens anything, and says only later that it is no database; and it would make a store of an empty file that
/// somebody else has just made; where none is to be made, an empty file is no store.
fn check_head(path: &Path, may_be_empty: bool) -> Result<(), StoreError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let Ok(file) = File::open(path) else { return Ok(()) };
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|error| StoreError::Open(path.to_owned(), error.to_string()))?;
    if head.is_empty() && may_be_empty || head == MAGIC { Ok(()) } else { Err(StoreError::NotAStore(path.to_owned())) }
}

fn configure(connection: &Connection, path: &Path, options: &Options) -> Result<(), StoreError> {
    let set = |name: &str, value: &str| {
        // Some of them answer with what they have become.
        connection.pragma_update_and_check(None, name, value, |_| Ok(())).optional().map(|_| ())
    };
    let all = || {
        set("journal_mode", "wal")?;
        set("synchronous", "full")?;
        set("cache_size", &format!("-{CACHE_KIB}"))?;
        set("temp_store", "memory")?;
        set("wal_autocheckpoint", &CHECKPOINT_PAGES.to_string())?;
        if let Some(most) = options.max_file_bytes {
            let page: u64 =
                connection.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.unsigned_abs();
            set("max_page_count", &(most / page.max(1)).max(1).to_string())?;
        }
        Ok(())
    };
    all().map_err(|error: rusqlite::Error| store_error(path, &error))
}

/// Makes the tables, unless another process has just done so.
fn create_tables(connection: &mut Connection, options: &Options) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let kind: i64 = transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if kind == 0 {
        transaction.execute_batch(include_str!("schema.sql"))?;
        let mut insert = transaction.prepare("INSERT INTO meta VALUES (?1, ?2)")?;
        insert.execute(("version", SCHEMA_VERSION))?;
        insert.execute(("order", options.order.name()))?;
        insert.execute(("last_number", 0))?;
        drop(insert);
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.commit()
}

/// Makes a store of version 1 one of version 2: its jobs stand in lines by their hosts, too.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = "SELECT CAST(value AS TEXT) FROM meta WHERE name = 'version'";
    if connection.query_row(version, [], |row| row.get::<_, String>(0))? != "1" {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    if transaction.query_row(version, [], |row| row.get::<_, String>(0))? == "1" {
        transaction.execute_batch(
            "ALTER TABLE job ADD COLUMN lane TEXT NOT NULL DEFAULT '';
             DROP INDEX job_ready;
             UPDATE meta SET value = 2 WHERE name = 'version';",
        )?;
        let mut jobs = transaction.prepare("SELECT number, key_hint, url FROM job JOIN request USING (number)")?;
        let mut set = transaction.prepare("UPDATE job SET lane = ?2 WHERE number = ?1")?;
        let mut rows = jobs.query([])?;
        while let Some(row) = rows.next()? {
            let (hint, url): (String, String) = (row.get(1)?, row.get(2)?);
            let host = JobRequest { url, ..JobRequest::default() }.host();
            let lane = JobLane { key_hint: Some(hint).filter(|hint| !hint.is_empty()), host };
            set.execute((row.get::<_, i64>(0)?, lane.to_text()))?;
        }
        drop(rows);
        drop((jobs, set));
        transaction
            .execute_batch("CREATE INDEX job_ready ON job (lane, priority DESC, rank) WHERE state = 'queued';")?;
    }
    transaction.commit()
}

fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = connection
        .query_row("SELECT CAST(value AS TEXT) FROM meta WHERE name = 'version'", [], |row| row.get::<_, String>(0))
        .map_err(|error| store_error(path, &error))?;
    if found == SCHEMA_VERSION.to_string() { Ok(()) } else { Err(StoreError::Version(path.to_owned(), found)) }
}

fn pragma(connection: &Connection, path: &Path, name: &str) -> Result<i64, StoreError> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| store_error(path, &error))
}

/// What SQLite says of a change, in our words. It knows a full disk by its own name only: a quota or a bound on the size of
/// files is told as a broken disk, and the system's word for it lies beside.
pub(super) fn write_error(path: &Path, error: &rusqlite::Error, connection: &Connection) -> StoreError {
    use rustix::io::Errno;
    let is_full = || [Errno::DQUOT, Errno::FBIG, Errno::NOSPC].map(Errno::raw_os_error).contains(&errno(connection));
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if is_full() => StoreError::NoSpace(path.to_owned(), 0),
        _ => store_error(path, error),
    }
}

/// The system's number of the last thing that went wrong.
#[allow(unsafe_code)]
fn errno(connection: &Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, which is borrowed for as long as the call takes.
    unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) }
}

/// What SQLite says, in our words.
pub(super) fn store_error(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::NoSpace(path, 0),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(path),
        Some(ErrorCode::NotADatabase) => StoreError::NotAStore(path),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::Open(path, error_text(error))
        }
        _ => StoreError::ReadWriteFailed(path, error_text(error)),
    }
}

fn error_text(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::Nanos;
    use crate::send::job::{Job, UnixMs};
    use crate::send::store::{ClaimRequest, LaneClaim, SqliteStore, Store};

    #[test]
    fn a_store_of_the_version_before_is_renewed_and_its_jobs_stand_in_the_lanes_of_their_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        let request = JobRequest { url: "http://a.example/x".into(), ..JobRequest::default() };
        let plain = Job { request, ..Job::default() };
        let hinted = Job { key_hint: Some("alice".into()), ..plain.clone() };
        SqliteStore::open(&path, &Options::default()).unwrap().submit(vec![plain, hinted]).wait().unwrap();
        let back = "DROP INDEX job_ready;
             ALTER TABLE job DROP COLUMN lane;
             CREATE INDEX job_ready ON job (key_hint, priority DESC, rank) WHERE state = 'queued';
             UPDATE meta SET value = 1 WHERE name = 'version';";
        Connection::open(&path).unwrap().execute_batch(back).unwrap();
        let store = SqliteStore::open(&path, &Options::default()).unwrap();
        store.start_sending(UnixMs(0)).unwrap();
        let wants =
            ["alice@a.example", "@a.example"].map(|word| LaneClaim { lane: JobLane::read(word), max_jobs: 9 }).to_vec();
        let claim = ClaimRequest {
            now: UnixMs(0),
            lease_duration: Nanos::NEVER,
            lanes: wants,
            max_bytes: u64::MAX,
            marks_sent: true,
        };
        let claimed = store.claim(claim).wait().unwrap();
        assert_eq!(claimed.jobs.iter().map(|(lease, _)| lease.number).collect::<Vec<_>>(), [2, 1]);
    }
}

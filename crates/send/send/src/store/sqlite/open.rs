//! Opening of a store's file: created if it is missing, checked if it exists.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::Options;
#[cfg(target_os = "linux")]
use super::locks;
use crate::store::{SCHEMA_VERSION, StoreError};
use weir_machine::private_file::create_private;

/// SQLite's application ID of a job store: `weir` in ASCII.
const APPLICATION_ID: i64 = 0x7765_6972;
/// Timeout of the wait for a lock that another program holds, `sqlite3` for example.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of SQLite's page cache, in KiB; bounds memory for any length of the queue.
const CACHE_KIB: u32 = 16 * 1024;
/// Length of the write-ahead log at which it is copied into the file, in pages of 4 KiB.
const CHECKPOINT_PAGES: u32 = 8 * 1024;

/// Opens the connection that writes.
pub(super) fn open_writer(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    if !options.create && !path.exists() {
        return Err(StoreError::NoStore(path.to_owned()));
    }
    check_head(path, options.create)?;
    if options.create {
        // Jobs have credentials in their headers. SQLite gives its log and its index the mode of the file.
        create_private(path).map_err(|error| StoreError::Open(path.to_owned(), error.to_string()))?;
    }
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
    check_version(&connection, path)?;
    Ok(connection)
}

/// Opens a connection that reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true).map_err(|error| store_error(path, &error))?;
    Ok(connection)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    #[cfg(target_os = "linux")]
    if weir_machine::system::LOCKS_DESCRIPTORS {
        locks::use_ofd_locks();
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| store_error(path, &error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| store_error(path, &error))?;
    Ok(connection)
}

/// Checks the first bytes, since SQLite itself opens any file and fails later. An empty file is a store only where one
/// may be created.
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
        // Some pragmas return their new value.
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

/// Creates the tables, unless another process has just done so.
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

fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = connection
        .query_row("SELECT CAST(value AS TEXT) FROM meta WHERE name = 'version'", [], |row| row.get::<_, String>(0))
        .map_err(|error| store_error(path, &error))?;
    let known = SCHEMA_VERSION.to_string();
    if found == known { Ok(()) } else { Err(StoreError::Version(path.to_owned(), found, known)) }
}

fn pragma(connection: &Connection, path: &Path, name: &str) -> Result<i64, StoreError> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| store_error(path, &error))
}

/// Error of a change. SQLite reports a quota or a file-size limit as an I/O error; the system's error number, which it
/// keeps, distinguishes them from a broken disk.
pub(super) fn write_error(path: &Path, error: &rusqlite::Error, connection: &Connection) -> StoreError {
    use rustix::io::Errno;
    let is_full = || [Errno::DQUOT, Errno::FBIG, Errno::NOSPC].map(Errno::raw_os_error).contains(&errno(connection));
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if is_full() => StoreError::NoSpace(path.to_owned(), 0),
        _ => store_error(path, error),
    }
}

/// The system's error number of the last failure.
#[allow(unsafe_code)]
fn errno(connection: &Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, which is borrowed for as long as the call takes.
    unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) }
}

/// Error of SQLite as a [`StoreError`].
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
    use crate::store::SqliteStore;

    #[test]
    fn a_store_of_another_version_is_rejected_in_one_line_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        drop(SqliteStore::open(&path, &Options::default()).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("UPDATE meta SET value = 2 WHERE name = 'version'").unwrap();
        let error = SqliteStore::open(&path, &Options::default()).unwrap_err().to_string();
        assert!(error.contains("has version 2; this weir reads version 4"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let version: u32 =
            connection.query_row("SELECT value FROM meta WHERE name = 'version'", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 2);
    }
}

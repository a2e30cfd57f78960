//! Where a queue is, as a person names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{JobOrder, MemoryStore, Options, QueueAddress, QueueBounds, RedisStore, SqliteStore, Store, StoreError};

/// Where a queue is.
#[derive(Clone, Debug)]
pub enum StoreUrl {
    /// In this process: `memory`.
    Memory,
    /// In a file.
    File(PathBuf),
    /// On a server: `redis://...`.
    Redis(Box<QueueAddress>),
}

impl StoreUrl {
    /// Reads it.
    ///
    /// # Errors
    /// It looks like the address of a server and is none.
    pub fn read(text: &Path) -> Result<Self, StoreError> {
        match text.to_str() {
            Some("memory") => Ok(Self::Memory),
            Some(address) if QueueAddress::is_address(address) => {
                Ok(Self::Redis(Box::new(QueueAddress::read(address)?)))
            }
            _ => Ok(Self::File(text.to_owned())),
        }
    }

    /// Opens the queue; makes one if there is none and `create` says so.
    ///
    /// # Errors
    /// It is no store, or cannot be had.
    pub fn open(&self, create: bool, bounds: QueueBounds, order: JobOrder) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new(bounds, order)),
            Self::File(path) => {
                Arc::new(SqliteStore::open(path, &Options { create, bounds, order, ..Options::default() })?)
            }
            Self::Redis(address) => Arc::new(RedisStore::open(address, create, bounds, order)?),
        })
    }

    /// Without secrets.
    pub fn redacted(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::File(path) => path.display().to_string(),
            Self::Redis(address) => address.redacted().to_owned(),
        }
    }
}

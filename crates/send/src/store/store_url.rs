//! Address of a job store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{JobOrder, MemoryStore, Options, QueueAddress, QueueBounds, RedisStore, SqliteStore, Store, StoreError};

/// Address of a job store, the value of `--store`.
#[derive(Clone, Debug)]
pub enum StoreUrl {
    /// Memory of this process: `memory`.
    Memory,
    /// SQLite file.
    File(PathBuf),
    /// Queue on a Redis server: `redis://...`.
    Redis(Box<QueueAddress>),
}

impl StoreUrl {
    /// Parses an address; any other text is the path of a file.
    ///
    /// # Errors
    /// An invalid Redis address.
    pub fn read(text: &Path) -> Result<Self, StoreError> {
        match text.to_str() {
            Some("memory") => Ok(Self::Memory),
            Some(address) if QueueAddress::is_address(address) => {
                Ok(Self::Redis(Box::new(QueueAddress::read(address)?)))
            }
            _ => Ok(Self::File(text.to_owned())),
        }
    }

    /// Opens the store; with `create`, a missing one is created.
    ///
    /// # Errors
    /// It is not a store, or cannot be opened.
    pub fn open(&self, create: bool, bounds: QueueBounds, order: JobOrder) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new(bounds, order)),
            Self::File(path) => {
                Arc::new(SqliteStore::open(path, &Options { create, bounds, order, ..Options::default() })?)
            }
            Self::Redis(address) => Arc::new(RedisStore::open(address, create, bounds, order)?),
        })
    }

    /// Address without secrets.
    pub fn redacted(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::File(path) => path.display().to_string(),
            Self::Redis(address) => address.redacted().to_owned(),
        }
    }
}

//! Address of a job store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{JobOrder, MemoryStore, QueueBounds, Store, StoreError};
#[cfg(feature = "sqlite")]
use super::{Options, SqliteStore};
#[cfg(feature = "redis")]
use super::{QueueAddress, RedisStore};

/// Address of a job store, the value of `--store`.
#[derive(Clone, Debug)]
pub enum StoreUrl {
    /// Memory of this process: `memory`.
    Memory,
    /// SQLite file.
    File(PathBuf),
    /// Queue on a Redis server: `redis://...`.
    #[cfg(feature = "redis")]
    Redis(Box<QueueAddress>),
}

impl StoreUrl {
    /// Parses an address; any other text is the path of a file.
    ///
    /// # Errors
    /// An invalid Redis address, or one in a build without the feature `redis`.
    pub fn read(text: &Path) -> Result<Self, StoreError> {
        match text.to_str() {
            Some("memory") => Ok(Self::Memory),
            #[cfg(feature = "redis")]
            Some(address) if QueueAddress::is_address(address) => {
                Ok(Self::Redis(Box::new(QueueAddress::read(address)?)))
            }
            #[cfg(not(feature = "redis"))]
            Some(address) if address.starts_with("redis") && address.contains("://") => {
                Err(StoreError::Address("redis".into(), left_out("redis")))
            }
            _ => Ok(Self::File(text.to_owned())),
        }
    }

    /// Opens the store; with `create`, a missing one is created.
    ///
    /// # Errors
    /// It is not a store, or cannot be opened, also by a build without the feature `sqlite`.
    pub fn open(&self, create: bool, bounds: QueueBounds, order: JobOrder) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new(bounds, order)),
            #[cfg(not(feature = "sqlite"))]
            Self::File(path) => {
                let _ = create;
                return Err(StoreError::Open(path.clone(), left_out("sqlite")));
            }
            #[cfg(feature = "sqlite")]
            Self::File(path) => {
                Arc::new(SqliteStore::open(path, &Options { create, bounds, order, ..Options::default() })?)
            }
            #[cfg(feature = "redis")]
            Self::Redis(address) => Arc::new(RedisStore::open(address, create, bounds, order)?),
        })
    }

    /// Address without secrets.
    pub fn redacted(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "redis")]
            Self::Redis(address) => address.redacted().to_owned(),
        }
    }
}

#[cfg(not(all(feature = "redis", feature = "sqlite")))]
fn left_out(feature: &str) -> String {
    format!("this build of weir has no such store; build it with the feature {feature}")
}

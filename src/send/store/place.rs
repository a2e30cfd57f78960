//! Where a queue is, as a person names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Address, Bounds, Memory, Options, Order, Redis, Sqlite, Store, StoreError};

/// Where a queue is.
#[derive(Clone, Debug)]
pub enum Place {
    /// In this process: `memory`.
    Memory,
    /// In a file.
    File(PathBuf),
    /// On a server: `redis://...`.
    Redis(Box<Address>),
}

impl Place {
    /// Reads it.
    ///
    /// # Errors
    /// It looks like the address of a server and is none.
    pub fn read(text: &Path) -> Result<Self, StoreError> {
        match text.to_str() {
            Some("memory") => Ok(Self::Memory),
            Some(address) if Address::is(address) => Ok(Self::Redis(Box::new(Address::read(address)?))),
            _ => Ok(Self::File(text.to_owned())),
        }
    }

    /// Opens the queue; makes one if there is none and `create` says so.
    ///
    /// # Errors
    /// It is no store, or cannot be had.
    pub fn open(&self, create: bool, bounds: Bounds, order: Order) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(Memory::new(bounds, order)),
            Self::File(path) => Arc::new(Sqlite::open(path, &Options { create, bounds, order, ..Options::default() })?),
            Self::Redis(address) => Arc::new(Redis::open(address, create, bounds, order)?),
        })
    }

    /// Without secrets.
    pub fn shown(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::File(path) => path.display().to_string(),
            Self::Redis(address) => address.shown().to_owned(),
        }
    }
}

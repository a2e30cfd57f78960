//! Durability check of a Redis server.

use ::redis::{Connection, RedisResult};

use super::address::QueueAddress;
use crate::store::StoreError;
use weir_redis::field;

/// Rejects a server that evicts keys when memory is full, and in strict mode one that may lose the last second. Strict
/// mode needs the right to `CONFIG GET`.
pub(super) fn check(connection: &mut Connection, info: &str, address: &QueueAddress) -> Result<(), StoreError> {
    let reject = |why: &str| Err(StoreError::NotDurable(address.path(), why.to_owned()));
    let policy = field(info, "maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && field(info, "maxmemory").is_some_and(|most| most != "0") {
        return reject(&format!("it evicts keys when memory is full ({policy}); set maxmemory-policy noeviction"));
    }
    if !address.strict {
        return Ok(());
    }
    if field(info, "aof_enabled") != Some("1") {
        return reject("it has no append-only file; set appendonly yes and appendfsync always, or leave strict out");
    }
    let reply: RedisResult<Vec<String>> = ::redis::cmd("CONFIG").arg("GET").arg("appendfsync").query(connection);
    match reply.as_deref() {
        Ok([_, sync]) if sync == "always" => Ok(()),
        Ok([_, sync]) => reject(&format!(
            "it may lose the last second (appendfsync {sync}); set appendfsync always, or leave strict out"
        )),
        _ => reject("no right to CONFIG GET appendfsync; allow it, or leave strict out"),
    }
}

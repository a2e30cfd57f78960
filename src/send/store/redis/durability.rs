//! What a server does with what it has been given: whether it may lose it.

use ::redis::{Connection, RedisResult};

use super::address::QueueAddress;
use crate::redis::field;
use crate::send::store::StoreError;

/// A server that throws keys away when its memory is full is refused, and in strict mode one that may lose the last
/// second. How it syncs it does not tell everybody: who may not ask cannot be strict.
pub(super) fn check(connection: &mut Connection, info: &str, address: &QueueAddress) -> Result<(), StoreError> {
    let refuse = |why: &str| Err(StoreError::NotDurable(address.path(), why.to_owned()));
    let policy = field(info, "maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && field(info, "maxmemory").is_some_and(|most| most != "0") {
        return refuse(&format!(
            "it throws keys away when its memory is full ({policy}); set maxmemory-policy noeviction"
        ));
    }
    if !address.strict {
        return Ok(());
    }
    if field(info, "aof_enabled") != Some("1") {
        return refuse("it keeps no log of changes; set appendonly yes and appendfsync always, or leave strict out");
    }
    let said: RedisResult<Vec<String>> = ::redis::cmd("CONFIG").arg("GET").arg("appendfsync").query(connection);
    match said.as_deref() {
        Ok([_, sync]) if sync == "always" => Ok(()),
        Ok([_, sync]) => refuse(&format!(
            "it may lose the last second (appendfsync {sync}); set appendfsync always, or leave strict out"
        )),
        _ => refuse("it does not say how it syncs (CONFIG GET appendfsync); allow that, or leave strict out"),
    }
}

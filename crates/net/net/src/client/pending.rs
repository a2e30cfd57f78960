//! Addresses of an origin whose name another part of the program resolves.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Mutex;

use tokio::sync::Notify;

use weir_machine::lock::lock;

/// Addresses that are found elsewhere, shared by all event loops: connections wait for them.
#[derive(Debug, Default)]
pub struct PendingAddresses {
    outcome: Mutex<Option<Result<Vec<SocketAddr>, String>>>,
    changed: Notify,
}

impl PendingAddresses {
    /// Sets the addresses, and wakes the connections that wait for them.
    pub fn found(&self, addresses: Vec<SocketAddr>) {
        self.set(Ok(addresses));
    }

    /// Sets why there are no addresses: connections fail at once until there are.
    pub fn failed(&self, why: &str) {
        self.set(Err(why.to_owned()));
    }

    fn set(&self, outcome: Result<Vec<SocketAddr>, String>) {
        *lock(&self.outcome) = Some(outcome);
        self.changed.notify_waiters();
    }

    /// The addresses, once there are some, or the reason why there are none.
    pub(super) async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on a change wakes, also one before the wait.
            changed.as_mut().enable();
            let outcome = lock(&self.outcome).clone();
            match outcome {
                Some(outcome) => return outcome,
                None => changed.await,
            }
        }
    }
}

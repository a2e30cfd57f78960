//! DNS of the gateway's own: it reports how long a response is valid, and has ports and weights (SRV).
//!
//! - `name`: a name as messages have it; [`message`]: a query as bytes, and what the bytes of a response have for it
//! - `service`: the hosts that SRV records and the addresses of their targets make; `schedule`: when to ask again
//! - `servers`: `/etc/resolv.conf`; `hosts_file`: `/etc/hosts`
//! - `client`: a question to servers over UDP and TCP; `lookup`: all the questions of one host's name
//!
//! Only the last two act; the others are values, and functions of bytes and texts.

mod client;
mod hosts_file;
mod lookup;
pub mod message;
mod name;
mod schedule;
mod servers;
mod service;
#[cfg(test)]
mod tests;

pub(super) use self::lookup::{LookupName, NameLookup, ResolvedAddresses};
pub use self::name::DnsName;
pub(super) use self::schedule::LookupSchedule;
pub(crate) use self::servers::DNS_PORT;

//! Properties of a machine that distort a measurement: facts that the edge reads, and checks of them.
//!
//! - [`MachineFacts`]: facts about the machine, read by [`MachineFacts::read`]
//! - `cpu_ticks`, `cpu_quota`, `tcp_limits`, `timer_lateness`: parts of it, from the system's files or measured
//! - [`check`]: the checks, pure: facts in, [`MachineCheck`]s out

mod checks;
mod cpu_checks;
mod cpu_quota;
mod cpu_ticks;
mod machine_check;
mod machine_facts;
mod tcp_limits;
mod timer_lateness;

pub use self::checks::check;
pub use self::cpu_quota::CpuQuota;
pub use self::cpu_ticks::{CpuTicks, CpuUse};
pub use self::machine_check::{CheckStatus, MachineCheck};
pub use self::machine_facts::MachineFacts;
pub use self::tcp_limits::{FilledTable, TcpLimits};
pub use self::timer_lateness::TimerLateness;

#[cfg(test)]
mod tests;

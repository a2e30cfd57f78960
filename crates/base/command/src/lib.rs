//! A command as a process, for a person, a script or a service manager.
//!
//! - [`Messages`]: lines on stderr; [`stdout`]: reports on stdout; [`mod@exit`]: exit codes; [`pages`]: where the documentation is
//! - [`self_command`]: command that starts this program again
//! - [`Interrupt`]: Ctrl-C, which ends work gracefully; [`exit_on_interrupt`]: before there is any
//! - [`ServerLifecycle`]: a server from its address on stdout to its last request; [`service_manager`]: messages to systemd

pub mod exit;
mod interrupt;
mod messages;
pub mod pages;
mod self_exec;
mod server_lifecycle;
pub mod service_manager;
pub mod stdout;

pub use self::interrupt::{Interrupt, exit_on_interrupt};
pub use self::messages::{MessageFormat, Messages};
pub use self::self_exec::{given_args, self_command};
pub use self::server_lifecycle::{ExitSignal, ServerLifecycle};

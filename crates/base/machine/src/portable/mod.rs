//! System interfaces of any Unix, in place of Linux's own: the standard library, POSIX, and mio.
//!
//! The modules have the items of those of `linux`. What has no counterpart reports that: no arrival times by the kernel,
//! no number of unacknowledged bytes, no affinity, and no sampling of processes.

mod alarm_thread;
mod copied_bytes;
pub mod cpu_affinity;
pub mod descendants;
mod mio_poll;
pub mod process_settings;
pub mod receive_age;
pub mod receive_timestamps;
mod regular_looks;
pub mod sockets;
pub mod unacknowledged;

pub use self::alarm_thread::AlarmThread as Alarm;
pub use self::copied_bytes::CopiedBytes as StaticFile;
pub use self::mio_poll::MioPoll as Poller;
pub use self::regular_looks::RegularLooks as FileWatcher;

/// Name of the interfaces, for users.
pub const NAME: &str = "portable";

/// Whether processes of others are sampled (`/proc`).
pub const SAMPLES_PROCESSES: bool = false;

/// Whether a lock of a file belongs to its open descriptor and not to the process (`F_OFD_SETLK`).
pub const LOCKS_DESCRIPTORS: bool = false;

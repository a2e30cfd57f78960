//! Linux's own system interfaces. `portable` has the same items for other systems.
//!
//! - [`Poller`], [`Alarm`]: readiness and timers, by epoll and timerfd
//! - [`receive_timestamps`], [`receive_age`], [`unacknowledged`]: what the kernel knows of a connection
//! - [`sockets`]: options of sockets; [`StaticFile`]: bytes that are sent without a copy
//! - [`cpu_affinity`], [`descendants`], [`process_settings`]: processes and their threads
//! - [`FileWatcher`]: changes of a file

pub mod cpu_affinity;
pub mod descendants;
mod epoll;
mod inotify;
mod memory_file;
pub mod process_settings;
pub mod receive_age;
pub mod receive_timestamps;
pub mod sockets;
mod timer_fd;
pub mod unacknowledged;

pub use self::epoll::Epoll as Poller;
pub use self::inotify::Inotify as FileWatcher;
pub use self::memory_file::MemoryFile as StaticFile;
pub use self::timer_fd::TimerFd as Alarm;

/// Name of the interfaces, for users.
pub const NAME: &str = "Linux";

/// Whether processes of others are sampled (`/proc`).
pub const SAMPLES_PROCESSES: bool = true;

/// Whether a lock of a file belongs to its open descriptor and not to the process (`F_OFD_SETLK`).
pub const LOCKS_DESCRIPTORS: bool = true;

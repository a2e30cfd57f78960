//! The `weir` command.
//!
//! `unsafe`, since the allocator's own way to give memory back has no safe wrapper.
#![allow(unsafe_code, reason = "mi_collect is a function of the allocator's, which is C")]

/// Many small pieces of memory come and go with each request; glibc's own allocator takes a twentieth of a gateway's
/// time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

unsafe extern "C" {
    /// `mi_collect` of mimalloc, which is linked as the allocator: gives back what this thread has freed, and with
    /// `force` also what it would rather keep for a while.
    fn mi_collect(force: bool);
}

/// See [`weir_machine::memory`].
fn release() {
    // SAFETY: it may be called at any time and by any thread (mimalloc.h); it frees nothing that is in use.
    unsafe { mi_collect(true) }
}

fn main() -> std::process::ExitCode {
    weir_machine::memory::set_release_hook(release);
    weir_cli::run(std::env::args_os()).into()
}

//! The `weir` command.
//!
//! `unsafe`, since the allocator's own way to give memory back has no safe wrapper.
#![allow(unsafe_code, reason = "mi_collect is a function of C")]

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

/// Commands that touch a little of much memory: huge pages would make a load hold ten megabytes more, for nothing.
const WITHOUT_HUGE_PAGES: [&str; 4] = ["load", "run", "capacity", "llm"];

fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).is_some_and(|command| WITHOUT_HUGE_PAGES.contains(&command.as_str())) {
        weir_machine::system::process_settings::forgo_huge_pages();
    }
    weir_machine::memory::set_release_hook(release);
    weir_cli::run(std::env::args_os()).into()
}

//! The `weir` command.

/// Many small pieces of memory come and go with each request; glibc's own allocator takes a twentieth of a gateway's
/// time for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    weir::cli::run(std::env::args_os()).into()
}

//! The `weir` command.

fn main() -> std::process::ExitCode {
    weir::cli::run(std::env::args_os()).into()
}

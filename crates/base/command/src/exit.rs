//! Exit codes, the same for every command.

/// Done; all objectives met.
pub const OK: u8 = 0;
/// Done; an objective was missed, or a side is worse.
pub const OBJECTIVE: u8 = 1;
/// Bad usage or setup, or a file could not be written.
pub const USAGE: u8 = 2;
/// No request succeeded; or the run is not trusted, and `--strict` was given; or an agent was lost.
pub const UNTRUSTED: u8 = 3;
/// Interrupted; what was measured has been written.
pub const INTERRUPTED: u8 = 130;

/// Each code with its meaning, for the manual.
pub const MEANINGS: [(u8, &str); 5] = [
    (OK, "done; all objectives met"),
    (OBJECTIVE, "an objective was missed, a condition ended the run, or a side of a comparison is worse"),
    (USAGE, "bad usage or setup, or a file could not be written"),
    (UNTRUSTED, "no request succeeded; or the run is not trusted, and --strict was given; or an agent was lost"),
    (INTERRUPTED, "interrupted; the results so far are written"),
];

/// Ends the process without what usually follows: a thread that cannot be ended would prevent it.
pub fn at_once(code: u8) -> ! {
    // Without stdout the exit code is still right.
    let _ = std::io::Write::flush(&mut std::io::stdout());
    signal_hook::low_level::exit(code.into());
}

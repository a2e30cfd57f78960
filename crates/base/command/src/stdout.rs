//! Stdout, which has reports and nothing else.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use weir_machine::dashboard::takes_escapes;

/// Original stdout, kept when descriptor 1 was redirected.
static RESERVED_STDOUT: OnceLock<File> = OnceLock::new();

/// Keeps stdout for reports and output files: what scripts print goes to stderr from now on, so that what a program reads
/// from stdout is whole.
///
/// # Errors
/// One line, if the system has no descriptor left.
pub fn reserve_stdout() -> Result<(), String> {
    if RESERVED_STDOUT.get().is_some() {
        return Ok(());
    }
    let own = own_stdout().and_then(|own| {
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(own)
    });
    let own = own.map_err(|error| format!("cannot keep stdout: {error}"))?;
    // Nothing else sets it.
    let _ = RESERVED_STDOUT.set(own);
    Ok(())
}

/// Stdout of reports, also where it is kept for them.
///
/// # Errors
/// The system has no descriptor left.
pub fn own_stdout() -> io::Result<File> {
    match RESERVED_STDOUT.get() {
        Some(own) => own.try_clone(),
        None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
    }
}

/// Whether reports on stdout have colours.
pub fn colors() -> bool {
    io::stdout().is_terminal() && takes_escapes()
}

/// Prints a report on stdout, or on stderr if an output file is stdout. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// One line, if stdout cannot be written.
pub fn print(report: &str, stdout_is_taken: bool) -> Result<(), String> {
    let written = if stdout_is_taken {
        io::stderr().lock().write_all(report.as_bytes())
    } else if let Some(mut own) = RESERVED_STDOUT.get() {
        own.write_all(report.as_bytes())
    } else {
        let mut out = io::stdout().lock();
        out.write_all(report.as_bytes()).and_then(|()| out.flush())
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !stdout_is_taken => {
            Err(format!("cannot write the report to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

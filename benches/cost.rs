//! Runs one command and writes what it cost: CPU time, peak memory, wall time, exit status.
//!
//! It stands between the harness and a load generator for one reason: Linux lets a process inherit the peak memory of
//! the one that started it, so that whatever a Python program starts seems to need at least what Python does. Started
//! from here, the lowest figure that can come out is that of this small program, about 2 MB.
//!
//! `cost --to FILE -- COMMAND [ARGUMENT...]` passes the three standard streams and the exit status through.
#![allow(unsafe_code, reason = "wait4, the only call that gives one child's usage, has no safe wrapper in std")]
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "this is an edge: it reads the clock to time a process")]

use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{fs, io, mem};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [to, file, dashes, program, rest @ ..] = args.as_slice() else { return usage() };
    if to != "--to" || dashes != "--" {
        return usage();
    }
    match run(file, program, rest) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("cost: {program}: {error}");
            ExitCode::from(127)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cost --to FILE -- COMMAND [ARGUMENT...] (benches/run.py starts it)");
    ExitCode::SUCCESS // `cargo bench` starts it without arguments
}

fn run(file: &str, program: &str, args: &[String]) -> io::Result<u8> {
    let started = Instant::now();
    let child = Command::new(program).args(args).spawn()?;
    let (status, usage) = wait(child.id())?;
    let seconds = started.elapsed().as_secs_f64();
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    let json = format!(
        "{{\"status\":{code},\"seconds\":{seconds:.6},\"user_s\":{:.6},\"sys_s\":{:.6},\"max_rss_kb\":{}}}\n",
        seconds_of(usage.ru_utime),
        seconds_of(usage.ru_stime),
        usage.ru_maxrss
    );
    fs::write(file, json)?;
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Waits for the child, and for no other; gives its raw status and its resource usage.
fn wait(pid: u32) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    loop {
        // SAFETY: rusage is plain data, both pointers live through the call, and nobody else waits for this child.
        let (waited, usage) = unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            (libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage), usage)
        };
        if waited >= 0 {
            return Ok((status, usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn seconds_of(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

//! Manifest of a run: command, seed, time, and description of the machine.

use std::fs;

use rustix::system::uname;

use super::plan::LoadPlan;
use weir_machine::{self as machine, clock, system};
use weir_measure::run::Manifest;

/// Manifest of a run that starts now.
pub fn manifest(plan: &LoadPlan, command: &[String]) -> Manifest {
    Manifest {
        command: plan.mask.command(command),
        seed: plan.seed,
        started_unix_s: clock::unix_s(),
        threads: plan.threads,
        ..machine_manifest()
    }
}

/// Description of this machine, as a manifest without a command.
pub fn machine_manifest() -> Manifest {
    let name = uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    let build = if system::NAME == "Linux" { "" } else { " (portable build)" };
    Manifest {
        hostname: text(name.nodename()),
        os: format!("{} {}{build}", text(name.sysname()), text(name.release())),
        cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| text(name.machine())),
        cores: machine::cores(),
        memory_mib: field("/proc/meminfo", "MemTotal")
            .and_then(|kb| kb.split_whitespace().next()?.parse::<u64>().ok())
            .map_or(0, |kb| kb / 1024),
        ..Manifest::default()
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

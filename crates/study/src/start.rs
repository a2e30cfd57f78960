//! Starting the programs of a measurement: free ports, placeholders, environment, readiness.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::definition::{Program, ReadyCheck};
use super::failure::MeasurementError;
use super::guarded_process::GuardedProcess;
use super::placeholders::{PlaceholderValues, fill};
use super::runner::{ENV_MARKER, MeasurementRunner};
use super::{packages, ready};
use weir_decide::Nanos;
use weir_machine::supervisor::ProgramSpec;

impl MeasurementRunner<'_> {
    /// Starts a program and waits until it is ready; how long that took.
    pub(super) fn start_program(
        &self,
        program: &Program,
        values: &PlaceholderValues,
        port: u16,
    ) -> Result<(GuardedProcess, Nanos), MeasurementError> {
        let command = program.command.iter().map(|word| self.fill(word, values)).collect::<Result<Vec<_>, _>>()?;
        let start = self.start_command(program, command, values)?;
        let filled = match &program.ready {
            ReadyCheck::Url(url) => ReadyCheck::Url(self.fill(url, values)?),
            ReadyCheck::Line(line) => ReadyCheck::Line(self.fill(line, values)?),
            other => other.clone(),
        };
        let line = if let ReadyCheck::Line(line) = &filled { Some(line.as_str()) } else { None };
        let mut running =
            GuardedProcess::start(self.launcher, start, line).map_err(MeasurementError::without_output)?;
        match ready::wait_ready(&running, &filled, port, self.definition.timeouts.ready, self.go_on) {
            Ok(took) => Ok((running, took)),
            Err(why) => {
                running.stop(self.definition.timeouts.stop);
                Err(why)
            }
        }
    }

    /// What to start: the filled-in command with its environment, folder and cores.
    pub(super) fn start_command(
        &self,
        program: &Program,
        command: Vec<String>,
        values: &PlaceholderValues,
    ) -> Result<ProgramSpec, MeasurementError> {
        let mut environment = BTreeMap::new();
        let mut path: Vec<PathBuf> = Vec::new();
        if let Some(folder) = self.environments.get(&program.name) {
            environment.insert("VIRTUAL_ENV".to_owned(), folder.join("venv").display().to_string());
            path.push(packages::bin_folder(folder));
        }
        path.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
        // "weir" in a study file is this program, wherever it is installed.
        let own = self.launcher.last().map(Path::new).and_then(Path::parent);
        path.extend(own.filter(|own| !own.as_os_str().is_empty()).map(Path::to_owned));
        let path: OsString = std::env::join_paths(path).unwrap_or_default();
        environment.insert("PATH".to_owned(), path.to_string_lossy().into_owned());
        for (name, value) in &program.environment {
            environment.insert(name.clone(), self.fill(value, values)?);
        }
        environment.insert(ENV_MARKER.to_owned(), self.token.to_owned());
        let folder = self.definition.folder.join(self.fill(&program.folder, values)?);
        Ok(ProgramSpec { command, environment, folder, cpus: self.cpu_sets.service_cpus.clone() })
    }

    /// The text with its placeholders filled in.
    pub(super) fn fill(&self, text: &str, values: &PlaceholderValues) -> Result<String, MeasurementError> {
        fill(text, values).map_err(|name| {
            MeasurementError::without_output(format!("unknown placeholder {{{name}}} for this variant"))
        })
    }

    /// Placeholders that every study has, and those of `[values]`.
    pub(super) fn built_in_values(&self, repeat: u64, out: &Path) -> PlaceholderValues {
        let absolute =
            |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let own = [
            ("repeat".to_owned(), repeat.to_string()),
            ("folder".to_owned(), absolute(&self.definition.folder)),
            ("out".to_owned(), absolute(out)),
        ];
        own.into_iter().chain(self.definition.values.clone()).collect()
    }
}

/// Free ports of 127.0.0.1, all different.
pub(super) fn free_ports(count: usize) -> Result<Vec<u16>, MeasurementError> {
    let none = |error: std::io::Error| MeasurementError::without_output(format!("no free port: {error}"));
    // All listeners stay open until all ports are found; otherwise a port might be found twice.
    let held = (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<Vec<_>, _>>().map_err(none)?;
    held.iter().map(|listener| listener.local_addr().map(|address| address.port()).map_err(none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ() {
        let ports = free_ports(20).expect("free ports");
        assert_eq!(ports.iter().collect::<std::collections::BTreeSet<_>>().len(), 20);
    }
}

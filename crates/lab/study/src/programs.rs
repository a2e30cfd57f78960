//! Programs of a study: their setup, and their start with placeholders, environment, free ports and readiness.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::cpu_sets::CpuSets;
use super::definition::{Definition, Program, ReadyCheck, Variant};
use super::failure::MeasurementError;
use super::guarded_process::{GuardedProcess, Launcher};
use super::leftovers::ENV_MARKER;
use super::placeholders::{PlaceholderValues, fill};
use super::{packages, ready};
use weir_base::Nanos;
use weir_machine::supervisor::ProgramSpec;

/// Programs of a study, with what they are started with.
pub(super) struct StudyPrograms<'a> {
    /// The study.
    pub(super) definition: &'a Definition,
    /// Command that starts this program again.
    pub(super) launcher: &'a Launcher,
    /// Token of this run of the study, unique among all.
    pub(super) token: &'a str,
    /// Division of the cores.
    pub(super) cpu_sets: &'a CpuSets,
    /// False once interrupted.
    pub(super) go_on: &'a (dyn Fn() -> bool + Sync),
    /// Folders of Python environments, by name of the program.
    pub(super) environments: BTreeMap<String, PathBuf>,
}

impl std::fmt::Debug for StudyPrograms<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StudyPrograms").field("token", &self.token).finish_non_exhaustive()
    }
}

impl StudyPrograms<'_> {
    /// Setup of a program, once before all measurements: packages and shell commands.
    ///
    /// # Errors
    /// The first step that fails.
    pub(super) fn set_up(&mut self, program: &Program, variant: Option<&Variant>) -> Result<(), MeasurementError> {
        let timeout = self.definition.timeouts.setup;
        if !program.requirements.is_empty() {
            let marker = BTreeMap::from([(ENV_MARKER.to_owned(), self.token.to_owned())]);
            let folder = packages::environment(&program.requirements, self.launcher, &marker, timeout, self.go_on)?;
            self.environments.insert(program.name.clone(), folder);
        }
        if program.setup.is_empty() {
            return Ok(());
        }
        let mut values = self.built_in_values(0, Path::new("."));
        values.extend(variant.into_iter().flat_map(|variant| variant.values.clone()));
        values.insert("variant".into(), program.name.clone());
        for line in &program.setup {
            let command = vec!["sh".to_owned(), "-c".to_owned(), self.fill(line, &values)?];
            let start = self.start_command(program, command, &values)?;
            packages::run_to_end(start.command, &start.folder, start.environment, self.launcher, timeout, self.go_on)?;
        }
        Ok(())
    }

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

    /// Command to start, filled in, with its environment, folder and cores.
    fn start_command(
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
        let folder_of = |word: &OsString| Path::new(word).parent().map(Path::to_owned);
        let own = [self.launcher.last(), self.launcher.first()].into_iter().flatten().filter_map(folder_of);
        // Text that an interpreter runs is not a path, and cannot be in PATH.
        path.extend(own.filter(|own| own.is_absolute() && std::env::join_paths([own]).is_ok()));
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
    fn fill(&self, text: &str, values: &PlaceholderValues) -> Result<String, MeasurementError> {
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

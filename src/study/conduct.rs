//! Makes one measurement: starts everything anew, waits, warms up, measures, and ends everything for sure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use super::cell::{LoadMetrics, Measurement, MeasurementId, WarmUpResult};
use super::cores::{CpuSets, pin_to};
use super::definition::{Definition, Program, ReadyCheck, Variant};
use super::drive::{self, LoadDrive};
use super::file::LoadSyntax;
use super::folder::ResultsFolder;
use super::placeholders::{PlaceholderValues, fill};
use super::running::{GuardedProcess, Launcher};
use super::sampling::{UsageSamples, VariantSampler};
use super::trouble::MeasurementError;
use super::{packages, ready};
use crate::agents;
use crate::decide::Nanos;
use crate::machine::clock::{self, Clock};
use crate::machine::guard::{ProgramExit, ProgramSpec};
use crate::machine::processes;
use crate::measure::Run;

/// In the environment of all that a study starts: whatever is left of it is found by this.
pub(super) const ENV_MARKER: &str = "WEIR_STUDY";

/// Makes measurements.
pub(super) struct MeasurementRunner<'a> {
    /// What is to be found out.
    pub(super) definition: &'a Definition,
    /// How loads are written.
    pub(super) load_syntax: &'a LoadSyntax<'a>,
    /// How we start ourselves anew.
    pub(super) launcher: &'a Launcher,
    /// Who drives the loads, if not we ourselves.
    pub(super) agents: Option<&'a agents::AgentSpec>,
    /// Names this run of the study among all.
    pub(super) token: &'a str,
    /// Who has which cores.
    pub(super) cpu_sets: &'a CpuSets,
    /// Whether to go on.
    pub(super) go_on: &'a (dyn Fn() -> bool + Sync),
    /// Where Python packages are, by variant and by service.
    pub(super) environments: BTreeMap<String, PathBuf>,
}

impl std::fmt::Debug for MeasurementRunner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conductor").field("token", &self.token).finish_non_exhaustive()
    }
}

/// A measurement, and the files that belong to it.
#[derive(Debug, Default)]
pub(super) struct MeasurementData {
    /// What came of it.
    pub(super) measurement: Measurement,
    /// The runs of its loads, with the names of their files.
    pub(super) runs: Vec<(String, Run)>,
    /// What the variant used.
    pub(super) samples: UsageSamples,
}

impl MeasurementRunner<'_> {
    /// Once before all measurements: packages and set-up of a program.
    ///
    /// # Errors
    /// What keeps it from being set up.
    pub(super) fn set_up(&mut self, program: &Program, variant: Option<&Variant>) -> Result<(), MeasurementError> {
        let patience = self.definition.times.setup;
        if !program.requirements.is_empty() {
            let mark = BTreeMap::from([(ENV_MARKER.to_owned(), self.token.to_owned())]);
            let made = packages::environment(&program.requirements, self.launcher, &mark, patience, self.go_on)?;
            self.environments.insert(program.name.clone(), made);
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
            packages::run_to_end(start.command, &start.folder, start.environment, self.launcher, patience, self.go_on)?;
        }
        Ok(())
    }

    /// Makes the measurement at `place`; its files will be in `folder`.
    ///
    /// # Errors
    /// Somebody has had enough; what fails is a finding and no error.
    pub(super) fn measure(
        &self,
        place: &MeasurementId,
        point: &[(String, String)],
        folder: &Path,
    ) -> Result<MeasurementData, MeasurementError> {
        let variant = &self.definition.variants[place.variant];
        let started_unix_s = clock::unix_s();
        let clock = Clock::started_ago(Nanos::ZERO);
        let mut measured = MeasurementData::default();
        let ended = self.try_measure(place, variant, point, folder, &mut measured);
        // Nothing is left, unless somebody has killed a guard.
        let left = || processes::started_with(ENV_MARKER, self.token);
        if !left().is_empty() {
            processes::kill_all(left);
        }
        match ended {
            Err(MeasurementError::Interrupted) => return Err(MeasurementError::Interrupted),
            Err(MeasurementError::Failed(failure)) => measured.measurement.failure = Some(failure),
            Ok(()) => {}
        }
        let cell = &mut measured.measurement;
        cell.weir = env!("CARGO_PKG_VERSION").to_owned();
        (cell.variant, cell.point, cell.repeat) = (variant.program.name.clone(), point.to_vec(), place.repeat);
        (cell.started_unix_s, cell.duration_s) = (started_unix_s, clock.now().as_secs_f64());
        Ok(measured)
    }

    fn try_measure(
        &self,
        place: &MeasurementId,
        variant: &Variant,
        point: &[(String, String)],
        folder: &Path,
        measured: &mut MeasurementData,
    ) -> Result<(), MeasurementError> {
        let mut values = self.built_in_values(place.repeat, folder);
        values.extend(point.iter().cloned());
        values.extend(variant.values.clone());
        values.insert("variant".into(), variant.program.name.clone());
        // All ports at once: nobody gets one that is another's.
        let ports = free_ports(self.definition.services.len() + 1)?;
        let (own, others) =
            ports.split_first().ok_or_else(|| MeasurementError::without_output("there is no free port"))?;
        for (service, port) in self.definition.services.iter().zip(others) {
            values.insert(format!("{}.port", service.name), port.to_string());
        }
        let mut services = Vec::new();
        for (service, port) in self.definition.services.iter().zip(others) {
            let mut values = values.clone();
            values.insert("port".into(), port.to_string());
            let (running, _) =
                self.start_program(service, &values, *port).map_err(|why| why.attributed_to(&service.name))?;
            services.push((service.name.as_str(), running));
        }
        values.insert("port".into(), own.to_string());
        let (mut running, ready) = self.start_program(&variant.program, &values, *own)?;
        measured.measurement.ready_s = (!variant.is_client).then(|| ready.as_secs_f64());
        let ended = if variant.is_client {
            self.run_client(&running, measured)
        } else {
            let is_there =
                || !running.has_terminated() && services.iter().all(|(_, running)| !running.has_terminated());
            self.drive_loads(&running, &is_there, place, &values, measured)
        };
        let lost = services.iter().find(|(_, running)| running.has_terminated());
        let lost = lost.map(|(name, running)| {
            MeasurementError::from_program("it ended in the middle".to_owned(), running).attributed_to(name)
        });
        running.stop(self.definition.times.stop);
        services.iter_mut().for_each(|(_, running)| running.stop(self.definition.times.stop));
        match (ended, lost) {
            (Err(MeasurementError::Interrupted), _) => Err(MeasurementError::Interrupted),
            (_, Some(lost)) => Err(lost),
            (ended, None) => ended,
        }
    }

    fn drive_loads(
        &self,
        running: &GuardedProcess,
        is_there: &(dyn Fn() -> bool + Sync),
        place: &MeasurementId,
        values: &PlaceholderValues,
        measured: &mut MeasurementData,
    ) -> Result<(), MeasurementError> {
        let point = &self.definition.points()[place.point];
        let mut drives = LoadDrive::all(self.definition, values, point, place.repeat, self.load_syntax)
            .map_err(MeasurementError::without_output)?;
        if let Some(agents) = self.agents {
            let placed = drive::place_agents(&mut drives, agents, self.cpu_sets, self.go_on);
            placed.map_err(|error| MeasurementError::from_program(error.to_string(), running))?;
        }
        let sampling = VariantSampler::new(Clock::started_ago(Nanos::ZERO), self.definition.limits.memory_bytes);
        let go_on = || (self.go_on)() && is_there() && sampling.excess_memory_bytes().is_none();
        let ran = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.cpu_sets);
            let warm_up = drive::warm_up(&drives, self.cpu_sets, &go_on);
            // From here on its samples count.
            let from = sampling.now();
            let runs = match &warm_up {
                Ok((_, None)) if go_on() => drive::measure(&drives, self.cpu_sets, &go_on),
                _ => Ok(Vec::new()),
            };
            sampling.stop();
            let samples = watching.join().unwrap_or_default();
            measured.samples = samples.since(from);
            warm_up.and_then(|warm_up| Ok((warm_up, runs?)))
        });
        if !(self.go_on)() {
            return Err(MeasurementError::Interrupted);
        }
        if let Some(used) = sampling.excess_memory_bytes() {
            let most = self.definition.limits.memory_bytes.unwrap_or(0);
            let why = format!("ended for its memory: {} MiB used, {} MiB allowed", used >> 20, most >> 20);
            return Err(MeasurementError::from_program(why, running));
        }
        if running.has_terminated() {
            let how = running.ending().map_or_else(|| "lost".to_owned(), |ending| ending.to_string());
            return Err(MeasurementError::from_program(format!("it ended in the middle: {how}"), running));
        }
        let ((warm_up, lost), runs) =
            ran.map_err(|error| MeasurementError::from_program(error.to_string(), running))?;
        measured.measurement.warm_up = warm_up;
        measured.measurement.lost_agent = lost.or_else(|| runs.iter().find_map(drive::lost_agent));
        self.record_runs(&drives, runs, warm_up, place, measured);
        match (&measured.measurement.lost_agent, no_success_reason(&measured.runs)) {
            (_, None) if !measured.runs.is_empty() => Ok(()),
            // Nothing of the service's speaks of it.
            (Some(why), _) => Err(MeasurementError::without_output(why.clone())),
            (None, Some(why)) => Err(MeasurementError::from_program(why, running)),
            (None, None) => Ok(()),
        }
    }

    fn record_runs(
        &self,
        drives: &[LoadDrive],
        runs: Vec<Run>,
        warm_up: Option<WarmUpResult>,
        place: &MeasurementId,
        measured: &mut MeasurementData,
    ) {
        let variant = &self.definition.variants[place.variant].program.name;
        let point = &self.definition.points()[place.point];
        let mut good = 0.0;
        for (drive, mut run) in drives.iter().zip(runs) {
            run.manifest.command = ["weir", "study", variant, &drive.name].map(str::to_owned).to_vec();
            let file = ResultsFolder::run_name(variant, point, &drive.name, place.repeat);
            let figures = LoadMetrics::of(&drive.name, &file, &run);
            good += figures.rate_per_s * run.duration_s;
            measured.measurement.loads.push(figures);
            let of = if drives.len() > 1 { format!("{}: ", drive.name) } else { String::new() };
            measured.measurement.doubts.extend(run.trust.reasons.iter().map(|reason| format!("{of}{reason}")));
            measured.runs.push((file, run));
        }
        if let Some(WarmUpResult { steady: false, duration_s: took_s }) = warm_up {
            measured
                .measurement
                .doubts
                .push(format!("never steady: throughput or response times still changed after {took_s:.1} s."));
        }
        measured.measurement.usage = measured.samples.usage(Some(good));
    }

    fn run_client(&self, running: &GuardedProcess, measured: &mut MeasurementData) -> Result<(), MeasurementError> {
        let sampling = VariantSampler::new(Clock::started_ago(Nanos::ZERO), self.definition.limits.memory_bytes);
        let go_on = || (self.go_on)() && sampling.excess_memory_bytes().is_none();
        let ended = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.cpu_sets);
            let ended = running.wait_for_end(self.definition.times.client, &go_on);
            sampling.stop();
            measured.samples = watching.join().unwrap_or_default();
            ended
        });
        if let (Some(used), true) = (sampling.excess_memory_bytes(), (self.go_on)()) {
            return Err(MeasurementError::from_program(
                format!("ended for its memory: {} MiB used", used >> 20),
                running,
            ));
        }
        ended?;
        measured.measurement.usage = measured.samples.usage(None);
        match running.ending() {
            Some(ProgramExit::Code(0)) => {}
            Some(ending) => return Err(MeasurementError::from_program(format!("it failed: {ending}"), running)),
            None => return Err(MeasurementError::from_program("it was lost".to_owned(), running)),
        }
        measured.measurement.client_metrics = client_metrics(&running.stdout().text());
        for metric in &self.definition.client_metrics {
            if !measured.measurement.client_metrics.contains_key(&metric.name) {
                let why = format!("its last line on stdout has no number \"{}\"", metric.name);
                return Err(MeasurementError::from_program(why, running));
            }
        }
        Ok(())
    }

    fn start_program(
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
        match ready::wait_ready(&running, &filled, port, self.definition.times.ready, self.go_on) {
            Ok(took) => Ok((running, took)),
            Err(why) => {
                running.stop(self.definition.times.stop);
                Err(why)
            }
        }
    }

    fn start_command(
        &self,
        program: &Program,
        command: Vec<String>,
        values: &PlaceholderValues,
    ) -> Result<ProgramSpec, MeasurementError> {
        let mut environment = BTreeMap::new();
        let mut path: Vec<PathBuf> = Vec::new();
        if let Some(made) = self.environments.get(&program.name) {
            environment.insert("VIRTUAL_ENV".to_owned(), made.join("venv").display().to_string());
            path.push(packages::bin_folder(made));
        }
        path.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
        // So that a file can say "weir" wherever this one is.
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

    fn fill(&self, text: &str, values: &PlaceholderValues) -> Result<String, MeasurementError> {
        fill(text, values)
            .map_err(|name| MeasurementError::without_output(format!("{{{name}}} stands for nothing for this variant")))
    }

    fn built_in_values(&self, repeat: u64, out: &Path) -> PlaceholderValues {
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

impl VariantSampler {
    /// Begins on the cores of the load.
    fn begin_on<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        guard: u32,
        split: &'scope CpuSets,
    ) -> thread::ScopedJoinHandle<'scope, UsageSamples> {
        self.begin(scope, guard, || pin_to(&split.load_cpus))
    }
}

/// Why a service that answered nothing well has failed, if it has.
fn no_success_reason(runs: &[(String, Run)]) -> Option<String> {
    let answered_nothing = |run: &&Run| run.requests.ok == 0 || run.rate_per_s.achieved <= 0.0;
    let run = runs.iter().map(|(_, run)| run).find(answered_nothing)?;
    let answers = run.status.iter().map(|(status, count)| format!("status {status}: {count}"));
    let failures = run.failures.iter().map(|(kind, count)| format!("{kind}: {count}"));
    let seen = answers.chain(failures).collect::<Vec<_>>().join(", ");
    let of = &run.target.url;
    Some(if seen.is_empty() {
        format!("{of} was not asked at all")
    } else {
        format!("no good answer from {of}; {seen}")
    })
}

/// The numbers of the last line that is a JSON object.
fn client_metrics(stdout: &str) -> BTreeMap<String, f64> {
    let object = |line: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).ok();
    let last = stdout.lines().rev().find_map(object).unwrap_or_default();
    last.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect()
}

fn free_ports(count: usize) -> Result<Vec<u16>, MeasurementError> {
    let none = |error: std::io::Error| MeasurementError::without_output(format!("there is no free port: {error}"));
    // All are held until all are found, or the same one might be found twice.
    let held = (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<Vec<_>, _>>().map_err(none)?;
    held.iter().map(|listener| listener.local_addr().map(|address| address.port()).map_err(none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_figures_are_the_numbers_of_its_last_object() {
        let stdout = "starting\n{\"rate\": 1}\n{\"rate\": 95.3, \"name\": \"x\", \"failed\": 0}\nbye\n";
        assert_eq!(client_metrics(stdout), BTreeMap::from([("failed".into(), 0.0), ("rate".into(), 95.3)]));
        assert_eq!(client_metrics("nothing"), BTreeMap::new());
    }

    #[test]
    fn ports_differ() {
        let ports = free_ports(20).expect("free ports");
        assert_eq!(ports.iter().collect::<std::collections::BTreeSet<_>>().len(), 20);
    }
}

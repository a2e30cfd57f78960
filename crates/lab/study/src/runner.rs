//! One measurement from start to end: programs are started and awaited, warmed up, measured and ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use super::ScriptReport;
use super::cpu_sets::{CpuSets, pin_to};
use super::definition::Variant;
use super::drive::{self, LoadDrive};
use super::failure::MeasurementError;
use super::file::LoadSyntax;
use super::guarded_process::GuardedProcess;
use super::leftovers::kill_leftovers;
use super::measurement::{LoadMetrics, MeasurementId, WarmUpResult};
use super::measurement_data::MeasurementData;
use super::placeholders::PlaceholderValues;
use super::programs::{StudyPrograms, free_ports};
use super::results_folder::ResultsFolder;
use super::sampling::{UsageSamples, VariantSampler};
use super::study_point::StudyPoint;
use weir_agents as agents;
use weir_base::Nanos;
use weir_machine::clock::{self, Clock};
use weir_machine::supervisor::ProgramExit;
use weir_measure::Run;

/// Runner of the measurements of a study, one at a time.
pub(super) struct MeasurementRunner<'a> {
    /// Programs of the study.
    pub(super) programs: StudyPrograms<'a>,
    /// Syntax of loads.
    pub(super) load_syntax: &'a LoadSyntax<'a>,
    /// Agents that generate the load, instead of this process.
    pub(super) agents: Option<&'a agents::AgentSpec>,
    /// Takes what a script has left at the end of a load.
    pub(super) script_report: &'a ScriptReport<'a>,
}

impl MeasurementRunner<'_> {
    /// Runs the measurement `place`, whose programs may write to `folder`. A failing variant is a finding: the result
    /// has it.
    ///
    /// # Errors
    /// [`MeasurementError::Interrupted`] only.
    pub(super) fn measure(
        &self,
        place: &MeasurementId,
        point: &StudyPoint,
        folder: &Path,
    ) -> Result<MeasurementData, MeasurementError> {
        let variant = &self.programs.definition.variants[place.variant];
        let started_unix_s = clock::unix_s();
        let clock = Clock::started_ago(Nanos::ZERO);
        let mut measured = MeasurementData::default();
        let ended = self.try_measure(place, variant, point, folder, &mut measured);
        // Something is left only if a supervisor was killed.
        kill_leftovers(self.programs.token);
        match ended {
            Err(MeasurementError::Interrupted) => return Err(MeasurementError::Interrupted),
            Err(MeasurementError::Failed(failure)) => measured.measurement.failure = Some(failure),
            Ok(()) => {}
        }
        let cell = &mut measured.measurement;
        cell.weir = env!("CARGO_PKG_VERSION").to_owned();
        (cell.variant, cell.point, cell.repeat) = (variant.program.name.clone(), point.clone(), place.repeat);
        (cell.started_unix_s, cell.duration_s) = (started_unix_s, clock.now().as_secs_f64());
        Ok(measured)
    }

    fn try_measure(
        &self,
        place: &MeasurementId,
        variant: &Variant,
        point: &StudyPoint,
        folder: &Path,
        measured: &mut MeasurementData,
    ) -> Result<(), MeasurementError> {
        let mut values = self.programs.built_in_values(place.repeat, folder);
        values.extend(point.values().map(|(name, value)| (name.to_owned(), value.to_owned())));
        values.extend(variant.values.clone());
        values.insert("variant".into(), variant.program.name.clone());
        // All ports are chosen at once, so that they differ.
        let ports = free_ports(self.programs.definition.services.len() + 1)?;
        let (own, others) = ports.split_first().ok_or_else(|| MeasurementError::without_output("no free port"))?;
        for (service, port) in self.programs.definition.services.iter().zip(others) {
            values.insert(format!("{}.port", service.name), port.to_string());
        }
        let mut services = Vec::new();
        for (service, port) in self.programs.definition.services.iter().zip(others) {
            let mut values = values.clone();
            values.insert("port".into(), port.to_string());
            let (running, _) =
                self.programs.start_program(service, &values, *port).map_err(|why| why.attributed_to(&service.name))?;
            services.push((service.name.as_str(), running));
        }
        values.insert("port".into(), own.to_string());
        let (mut running, ready) = self.programs.start_program(&variant.program, &values, *own)?;
        measured.measurement.ready_s = (!variant.is_client).then(|| ready.as_secs_f64());
        let ended = if variant.is_client {
            self.run_client(&running, measured)
        } else {
            let is_there =
                || !running.has_terminated() && services.iter().all(|(_, running)| !running.has_terminated());
            self.drive_loads(&running, &is_there, place, &values, measured)
        };
        let lost = services.iter().find(|(_, running)| running.has_terminated());
        let lost = lost.map(|(name, running)| running.failure("it ended in the middle").attributed_to(name));
        running.stop(self.programs.definition.timeouts.stop);
        services.iter_mut().for_each(|(_, running)| running.stop(self.programs.definition.timeouts.stop));
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
        let point = &self.programs.definition.points()[place.point];
        let mut drives = LoadDrive::all(self.programs.definition, values, point, place.repeat, self.load_syntax)
            .map_err(MeasurementError::without_output)?;
        if self.agents.is_some() || drives.iter().any(LoadDrive::has_script) {
            // What drives users of a script is a process of its own.
            let own = agents::AgentSpec {
                backend: agents::Backend::Local,
                agents: Some(1),
                per_node: 1,
                launcher: self.programs.launcher.to_vec(),
            };
            let specs = drive::StudyAgents { all_loads: self.agents, scripts: &own };
            let placed = drive::place_agents(&mut drives, specs, self.programs.cpu_sets, self.programs.go_on);
            placed.map_err(|error| running.failure(error.to_string()))?;
        }
        let sampling =
            VariantSampler::new(Clock::started_ago(Nanos::ZERO), self.programs.definition.limits.memory_bytes);
        let go_on = || (self.programs.go_on)() && is_there() && sampling.excess_memory_bytes().is_none();
        let ran = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.programs.cpu_sets);
            let warm_up = drive::warm_up(&drives, self.programs.cpu_sets, self.script_report, &go_on);
            // Samples count from here on.
            let from = sampling.now();
            let runs = match &warm_up {
                Ok((_, None)) if go_on() => drive::measure(&drives, self.programs.cpu_sets, self.script_report, &go_on),
                _ => Ok(Vec::new()),
            };
            sampling.stop();
            let samples = watching.join().unwrap_or_default();
            measured.samples = samples.since(from);
            warm_up.and_then(|warm_up| Ok((warm_up, runs?)))
        });
        if !(self.programs.go_on)() {
            return Err(MeasurementError::Interrupted);
        }
        if let Some(used) = sampling.excess_memory_bytes() {
            let most = self.programs.definition.limits.memory_bytes.unwrap_or(0);
            let why = format!("over its memory limit: {} MiB used, {} MiB allowed", used >> 20, most >> 20);
            return Err(running.failure(why));
        }
        if running.has_terminated() {
            let how = running.ending().map_or_else(|| "lost".to_owned(), |ending| ending.to_string());
            return Err(running.failure(format!("it ended in the middle: {how}")));
        }
        let ((warm_up, lost), runs) = ran.map_err(|error| running.failure(error.to_string()))?;
        measured.measurement.warmup = warm_up;
        measured.measurement.lost_agent = lost.or_else(|| runs.iter().find_map(drive::lost_agent));
        self.record_runs(&drives, runs, warm_up, place, measured);
        match (&measured.measurement.lost_agent, no_success_reason(&measured.runs)) {
            (_, None) if !measured.runs.is_empty() => Ok(()),
            // The service's own output does not explain a lost agent.
            (Some(why), _) => Err(MeasurementError::without_output(why.clone())),
            (None, Some(why)) => Err(running.failure(why)),
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
        let variant = &self.programs.definition.variants[place.variant].program.name;
        let point = &self.programs.definition.points()[place.point];
        let mut successes = 0.0;
        for (drive, mut run) in drives.iter().zip(runs) {
            run.manifest.command = ["weir", "study", variant, &drive.name].map(str::to_owned).to_vec();
            let file = ResultsFolder::run_name(variant, point, &drive.name, place.repeat);
            let metrics = LoadMetrics::of(&drive.name, &file, &run);
            successes += metrics.rate_per_s * run.duration_s;
            measured.measurement.loads.push(metrics);
            let prefix = if drives.len() > 1 { format!("{}: ", drive.name) } else { String::new() };
            measured.measurement.warnings.extend(run.trust.reasons.iter().map(|reason| format!("{prefix}{reason}")));
            measured.runs.push((file, run));
        }
        if let Some(WarmUpResult { steady: false, duration_s }) = warm_up {
            measured
                .measurement
                .warnings
                .push(format!("never steady: throughput or response times still changed after {duration_s:.1} s."));
        }
        measured.measurement.usage = measured.samples.usage(Some(successes));
    }

    fn run_client(&self, running: &GuardedProcess, measured: &mut MeasurementData) -> Result<(), MeasurementError> {
        let sampling =
            VariantSampler::new(Clock::started_ago(Nanos::ZERO), self.programs.definition.limits.memory_bytes);
        let go_on = || (self.programs.go_on)() && sampling.excess_memory_bytes().is_none();
        let ended = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.programs.cpu_sets);
            let ended = running.wait_for_end(self.programs.definition.timeouts.client, &go_on);
            sampling.stop();
            measured.samples = watching.join().unwrap_or_default();
            ended
        });
        if let (Some(used), true) = (sampling.excess_memory_bytes(), (self.programs.go_on)()) {
            return Err(running.failure(format!("over its memory limit: {} MiB used", used >> 20)));
        }
        ended?;
        measured.measurement.usage = measured.samples.usage(None);
        match running.ending() {
            Some(ProgramExit::Code(0)) => {}
            Some(ending) => return Err(running.failure(format!("it failed: {ending}"))),
            None => return Err(running.failure("it was lost")),
        }
        measured.measurement.client_metrics = client_metrics(&running.stdout().text());
        for metric in &self.programs.definition.client_metrics {
            if !measured.measurement.client_metrics.contains_key(&metric.name) {
                let why = format!("its last line on stdout has no number \"{}\"", metric.name);
                return Err(running.failure(why));
            }
        }
        Ok(())
    }
}

impl VariantSampler {
    /// Starts sampling on the cores of the load.
    fn begin_on<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        guard: u32,
        split: &'scope CpuSets,
    ) -> thread::ScopedJoinHandle<'scope, UsageSamples> {
        self.begin(scope, guard, || pin_to(&split.load_cpus))
    }
}

/// Reason why the service has failed, if a load had no success.
fn no_success_reason(runs: &[(String, Run)]) -> Option<String> {
    let has_no_success = |run: &&Run| run.requests.ok == 0 || run.rate_per_s.achieved <= 0.0;
    let run = runs.iter().map(|(_, run)| run).find(has_no_success)?;
    let responses = run.status.iter().map(|(status, count)| format!("status {status}: {count}"));
    let failures = run.failures.iter().map(|(kind, count)| format!("{kind}: {count}"));
    let seen = responses.chain(failures).collect::<Vec<_>>().join(", ");
    let url = &run.target.url;
    if run.requests.ok > 0 {
        let count = run.requests.ok;
        return Some(format!(
            "all {count} good responses from {url} came after the load's time; give it a longer duration"
        ));
    }
    Some(if seen.is_empty() {
        format!("no request was sent to {url}")
    } else {
        format!("no good response from {url}; {seen}")
    })
}

/// Numbers of the last line that is a JSON object.
fn client_metrics(stdout: &str) -> BTreeMap<String, f64> {
    let object = |line: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).ok();
    let last = stdout.lines().rev().find_map(object).unwrap_or_default();
    last.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_client_are_the_numbers_of_its_last_object() {
        let stdout = "starting\n{\"rate\": 1}\n{\"rate\": 95.3, \"name\": \"x\", \"failed\": 0}\nbye\n";
        assert_eq!(client_metrics(stdout), BTreeMap::from([("failed".into(), 0.0), ("rate".into(), 95.3)]));
        assert_eq!(client_metrics("nothing"), BTreeMap::new());
    }
}

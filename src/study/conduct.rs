//! Makes one measurement: starts everything anew, waits, warms up, measures, and ends everything for sure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use super::cell::{Cell, LoadFigures, Place, WarmUp};
use super::cores::{Split, keep_to};
use super::definition::{Definition, Program, Ready, Variant};
use super::drive::{self, Drive};
use super::file::LoadWords;
use super::folder::Folder;
use super::placeholders::{Values, fill};
use super::running::{Launcher, Running};
use super::sampling::{Samples, Sampling};
use super::trouble::Trouble;
use super::{packages, ready};
use crate::agents;
use crate::decide::Nanos;
use crate::machine::clock::{self, Clock};
use crate::machine::guard::{Ending, Start};
use crate::machine::processes;
use crate::measure::Run;

/// In the environment of all that a study starts: whatever is left of it is found by this.
pub(super) const MARK: &str = "WEIR_STUDY";

/// Makes measurements.
pub(super) struct Conductor<'a> {
    /// What is to be found out.
    pub(super) definition: &'a Definition,
    /// How loads are written.
    pub(super) words: &'a LoadWords<'a>,
    /// How we start ourselves anew.
    pub(super) launcher: &'a Launcher,
    /// Who drives the loads, if not we ourselves.
    pub(super) agents: Option<&'a agents::Asked>,
    /// Names this run of the study among all.
    pub(super) token: &'a str,
    /// Who has which cores.
    pub(super) split: &'a Split,
    /// Whether to go on.
    pub(super) go_on: &'a (dyn Fn() -> bool + Sync),
    /// Where Python packages are, by variant and by service.
    pub(super) environments: BTreeMap<String, PathBuf>,
}

impl std::fmt::Debug for Conductor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conductor").field("token", &self.token).finish_non_exhaustive()
    }
}

/// A measurement, and the files that belong to it.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// What came of it.
    pub(super) cell: Cell,
    /// The runs of its loads, with the names of their files.
    pub(super) runs: Vec<(String, Run)>,
    /// What the variant used.
    pub(super) samples: Samples,
}

impl Conductor<'_> {
    /// Once before all measurements: packages and set-up of a program.
    ///
    /// # Errors
    /// What keeps it from being set up.
    pub(super) fn set_up(&mut self, program: &Program, variant: Option<&Variant>) -> Result<(), Trouble> {
        let patience = self.definition.times.setup;
        if !program.requirements.is_empty() {
            let mark = BTreeMap::from([(MARK.to_owned(), self.token.to_owned())]);
            let made = packages::environment(&program.requirements, self.launcher, &mark, patience, self.go_on)?;
            self.environments.insert(program.name.clone(), made);
        }
        if program.setup.is_empty() {
            return Ok(());
        }
        let mut values = self.own_values(0, Path::new("."));
        values.extend(variant.into_iter().flat_map(|variant| variant.values.clone()));
        values.insert("variant".into(), program.name.clone());
        for line in &program.setup {
            let command = vec!["sh".to_owned(), "-c".to_owned(), self.fill(line, &values)?];
            let start = self.start_of(program, command, &values)?;
            packages::once(start.command, &start.folder, start.environment, self.launcher, patience, self.go_on)?;
        }
        Ok(())
    }

    /// Makes the measurement at `place`; its files will be in `folder`.
    ///
    /// # Errors
    /// Somebody has had enough; what fails is a finding and no error.
    pub(super) fn measure(
        &self,
        place: &Place,
        point: &[(String, String)],
        folder: &Path,
    ) -> Result<Measured, Trouble> {
        let variant = &self.definition.variants[place.variant];
        let started_unix_s = clock::unix_s();
        let clock = Clock::started(Nanos::ZERO);
        let mut measured = Measured::default();
        let ended = self.try_measure(place, variant, point, folder, &mut measured);
        // Nothing is left, unless somebody has killed a guard.
        let left = || processes::started_with(MARK, self.token);
        if !left().is_empty() {
            processes::kill_all(left);
        }
        match ended {
            Err(Trouble::Interrupted) => return Err(Trouble::Interrupted),
            Err(Trouble::Failed(failure)) => measured.cell.failure = Some(failure),
            Ok(()) => {}
        }
        let cell = &mut measured.cell;
        cell.weir = env!("CARGO_PKG_VERSION").to_owned();
        (cell.variant, cell.point, cell.repeat) = (variant.program.name.clone(), point.to_vec(), place.repeat);
        (cell.started_unix_s, cell.took_s) = (started_unix_s, clock.now().as_secs_f64());
        Ok(measured)
    }

    fn try_measure(
        &self,
        place: &Place,
        variant: &Variant,
        point: &[(String, String)],
        folder: &Path,
        measured: &mut Measured,
    ) -> Result<(), Trouble> {
        let mut values = self.own_values(place.repeat, folder);
        values.extend(point.iter().cloned());
        values.extend(variant.values.clone());
        values.insert("variant".into(), variant.program.name.clone());
        // All ports at once: nobody gets one that is another's.
        let ports = free_ports(self.definition.services.len() + 1)?;
        let (own, others) = ports.split_first().ok_or_else(|| Trouble::plain("there is no free port"))?;
        for (service, port) in self.definition.services.iter().zip(others) {
            values.insert(format!("{}.port", service.name), port.to_string());
        }
        let mut services = Vec::new();
        for (service, port) in self.definition.services.iter().zip(others) {
            let mut values = values.clone();
            values.insert("port".into(), port.to_string());
            let (running, _) = self.start(service, &values, *port).map_err(|why| why.by(&service.name))?;
            services.push((service.name.as_str(), running));
        }
        values.insert("port".into(), own.to_string());
        let (mut running, ready) = self.start(&variant.program, &values, *own)?;
        measured.cell.ready_s = (!variant.is_client).then(|| ready.as_secs_f64());
        let ended = if variant.is_client {
            self.watch_client(&running, measured)
        } else {
            let is_there = || !running.is_gone() && services.iter().all(|(_, running)| !running.is_gone());
            self.drive(&running, &is_there, place, &values, measured)
        };
        let lost = services.iter().find(|(_, running)| running.is_gone());
        let lost = lost.map(|(name, running)| Trouble::of("it ended in the middle".to_owned(), running).by(name));
        running.stop(self.definition.times.stop);
        services.iter_mut().for_each(|(_, running)| running.stop(self.definition.times.stop));
        match (ended, lost) {
            (Err(Trouble::Interrupted), _) => Err(Trouble::Interrupted),
            (_, Some(lost)) => Err(lost),
            (ended, None) => ended,
        }
    }

    fn drive(
        &self,
        running: &Running,
        is_there: &(dyn Fn() -> bool + Sync),
        place: &Place,
        values: &Values,
        measured: &mut Measured,
    ) -> Result<(), Trouble> {
        let point = &self.definition.points()[place.point];
        let mut drives =
            Drive::all(self.definition, values, point, place.repeat, self.words).map_err(Trouble::plain)?;
        if let Some(agents) = self.agents {
            let placed = drive::place(&mut drives, agents, self.split, self.go_on);
            placed.map_err(|error| Trouble::of(error.to_string(), running))?;
        }
        let sampling = Sampling::new(Clock::started(Nanos::ZERO), self.definition.limits.memory);
        let go_on = || (self.go_on)() && is_there() && sampling.excess().is_none();
        let ran = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.split);
            let warm_up = drive::warm_up(&drives, self.split, &go_on);
            // From here on its samples count.
            let from = sampling.now();
            let runs = match &warm_up {
                Ok((_, None)) if go_on() => drive::measure(&drives, self.split, &go_on),
                _ => Ok(Vec::new()),
            };
            sampling.end();
            let samples = watching.join().unwrap_or_default();
            measured.samples = samples.since(from);
            warm_up.and_then(|warm_up| Ok((warm_up, runs?)))
        });
        if !(self.go_on)() {
            return Err(Trouble::Interrupted);
        }
        if let Some(used) = sampling.excess() {
            let most = self.definition.limits.memory.unwrap_or(0);
            let why = format!("ended for its memory: {} MiB used, {} MiB allowed", used >> 20, most >> 20);
            return Err(Trouble::of(why, running));
        }
        if running.is_gone() {
            let how = running.ending().map_or_else(|| "lost".to_owned(), |ending| ending.to_string());
            return Err(Trouble::of(format!("it ended in the middle: {how}"), running));
        }
        let ((warm_up, lost), runs) = ran.map_err(|error| Trouble::of(error.to_string(), running))?;
        measured.cell.warm_up = warm_up;
        measured.cell.lost = lost.or_else(|| runs.iter().find_map(drive::lost_agent));
        self.take(&drives, runs, warm_up, place, measured);
        match (&measured.cell.lost, runs_that_answered_nothing(&measured.runs)) {
            (_, None) if !measured.runs.is_empty() => Ok(()),
            // Nothing of the service's speaks of it.
            (Some(why), _) => Err(Trouble::plain(why.clone())),
            (None, Some(why)) => Err(Trouble::of(why, running)),
            (None, None) => Ok(()),
        }
    }

    fn take(&self, drives: &[Drive], runs: Vec<Run>, warm_up: Option<WarmUp>, place: &Place, measured: &mut Measured) {
        let variant = &self.definition.variants[place.variant].program.name;
        let point = &self.definition.points()[place.point];
        let mut good = 0.0;
        for (drive, mut run) in drives.iter().zip(runs) {
            run.manifest.command = ["weir", "study", variant, &drive.name].map(str::to_owned).to_vec();
            let file = Folder::run_name(variant, point, &drive.name, place.repeat);
            let figures = LoadFigures::of(&drive.name, &file, &run);
            good += figures.rate_per_s * run.duration_s;
            measured.cell.loads.push(figures);
            let of = if drives.len() > 1 { format!("{}: ", drive.name) } else { String::new() };
            measured.cell.doubts.extend(run.trust.reasons.iter().map(|reason| format!("{of}{reason}")));
            measured.runs.push((file, run));
        }
        if let Some(WarmUp { steady: false, took_s }) = warm_up {
            measured
                .cell
                .doubts
                .push(format!("never steady: throughput or response times still changed after {took_s:.1} s."));
        }
        measured.cell.usage = measured.samples.usage(Some(good));
    }

    fn watch_client(&self, running: &Running, measured: &mut Measured) -> Result<(), Trouble> {
        let sampling = Sampling::new(Clock::started(Nanos::ZERO), self.definition.limits.memory);
        let go_on = || (self.go_on)() && sampling.excess().is_none();
        let ended = thread::scope(|scope| {
            let watching = sampling.begin_on(scope, running.guard(), self.split);
            let ended = running.end(self.definition.times.client, &go_on);
            sampling.end();
            measured.samples = watching.join().unwrap_or_default();
            ended
        });
        if let (Some(used), true) = (sampling.excess(), (self.go_on)()) {
            return Err(Trouble::of(format!("ended for its memory: {} MiB used", used >> 20), running));
        }
        ended?;
        measured.cell.usage = measured.samples.usage(None);
        match running.ending() {
            Some(Ending::Code(0)) => {}
            Some(ending) => return Err(Trouble::of(format!("it failed: {ending}"), running)),
            None => return Err(Trouble::of("it was lost".to_owned(), running)),
        }
        measured.cell.figures = figures(&running.stdout().text());
        for metric in &self.definition.figures {
            if !measured.cell.figures.contains_key(&metric.name) {
                let why = format!("its last line on stdout has no number \"{}\"", metric.name);
                return Err(Trouble::of(why, running));
            }
        }
        Ok(())
    }

    fn start(&self, program: &Program, values: &Values, port: u16) -> Result<(Running, Nanos), Trouble> {
        let command = program.command.iter().map(|word| self.fill(word, values)).collect::<Result<Vec<_>, _>>()?;
        let start = self.start_of(program, command, values)?;
        let filled = match &program.ready {
            Ready::Url(url) => Ready::Url(self.fill(url, values)?),
            Ready::Line(line) => Ready::Line(self.fill(line, values)?),
            other => other.clone(),
        };
        let line = if let Ready::Line(line) = &filled { Some(line.as_str()) } else { None };
        let mut running = Running::start(self.launcher, start, line).map_err(Trouble::plain)?;
        match ready::wait(&running, &filled, port, self.definition.times.ready, self.go_on) {
            Ok(took) => Ok((running, took)),
            Err(why) => {
                running.stop(self.definition.times.stop);
                Err(why)
            }
        }
    }

    fn start_of(&self, program: &Program, command: Vec<String>, values: &Values) -> Result<Start, Trouble> {
        let mut environment = BTreeMap::new();
        let mut path: Vec<PathBuf> = Vec::new();
        if let Some(made) = self.environments.get(&program.name) {
            environment.insert("VIRTUAL_ENV".to_owned(), made.join("venv").display().to_string());
            path.push(packages::programs(made));
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
        environment.insert(MARK.to_owned(), self.token.to_owned());
        let folder = self.definition.folder.join(self.fill(&program.folder, values)?);
        Ok(Start { command, environment, folder, cpus: self.split.service.clone() })
    }

    fn fill(&self, text: &str, values: &Values) -> Result<String, Trouble> {
        fill(text, values).map_err(|name| Trouble::plain(format!("{{{name}}} stands for nothing for this variant")))
    }

    fn own_values(&self, repeat: u64, out: &Path) -> Values {
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

impl Sampling {
    /// Begins on the cores of the load.
    fn begin_on<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        guard: u32,
        split: &'scope Split,
    ) -> thread::ScopedJoinHandle<'scope, Samples> {
        self.begin(scope, guard, || keep_to(&split.load))
    }
}

/// Why a service that answered nothing well has failed, if it has.
fn runs_that_answered_nothing(runs: &[(String, Run)]) -> Option<String> {
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
fn figures(stdout: &str) -> BTreeMap<String, f64> {
    let object = |line: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).ok();
    let last = stdout.lines().rev().find_map(object).unwrap_or_default();
    last.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect()
}

fn free_ports(count: usize) -> Result<Vec<u16>, Trouble> {
    let none = |error: std::io::Error| Trouble::plain(format!("there is no free port: {error}"));
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
        assert_eq!(figures(stdout), BTreeMap::from([("failed".into(), 0.0), ("rate".into(), 95.3)]));
        assert_eq!(figures("nothing"), BTreeMap::new());
    }

    #[test]
    fn ports_differ() {
        let ports = free_ports(20).expect("free ports");
        assert_eq!(ports.iter().collect::<std::collections::BTreeSet<_>>().len(), 20);
    }
}

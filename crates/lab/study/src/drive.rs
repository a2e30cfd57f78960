//! Loads of a measurement: the warm-up until the service is steady, then the measured run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::ScriptReport;
use super::cpu_sets::{CpuSets, pin_to};
use super::definition::{Definition, StudyLoad};
use super::file::{LoadSyntax, options};
use super::measurement::WarmUpResult;
use super::placeholders::PlaceholderValues;
use super::study_point::StudyPoint;
use weir_agents::{self as agents, Coordinator};
use weir_base::Nanos;
use weir_load::program::ProgramOptions;
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_machine::lock::lock;
use weir_measure::steady::{self, STEADY_INTERVALS};
use weir_measure::{Run, RunProgress};

/// Load of a measurement, checked.
#[derive(Debug)]
pub(super) struct LoadDrive {
    /// Name of the load.
    pub(super) name: String,
    load: CheckedLoad,
    /// Same load for the maximum duration of the warm-up; None without a warm-up.
    warm_up: Option<CheckedLoad>,
    /// Agents that generate the load, instead of this process.
    coordinator: Option<Mutex<Coordinator>>,
}

/// Load as options and as plan.
#[derive(Debug)]
struct CheckedLoad {
    options: Options,
    plan: LoadPlan,
}

/// Minimum number of intervals of a warm-up, ...
const MIN_WARM_UP_INTERVALS: u64 = 20;
/// ... each of at most this length.
const MAX_WARM_UP_INTERVAL: Nanos = Nanos::from_millis(250);

impl LoadDrive {
    /// Loads that are applied at this point, with these placeholders. All variants of a round get the same arrivals and
    /// bodies.
    ///
    /// # Errors
    /// The first error, in one line.
    pub(super) fn all(
        definition: &Definition,
        values: &PlaceholderValues,
        point: &StudyPoint,
        repeat: u64,
        words: &LoadSyntax<'_>,
    ) -> Result<Vec<Self>, String> {
        let one = |load: &StudyLoad| {
            let mut options = options(load, values, &definition.folder, words)?;
            options.seed = Some(definition.seed.wrapping_add(repeat));
            if let (Some(longest), true) = (definition.max_load_time, options.stages.is_empty()) {
                options.duration = Some(options.duration.unwrap_or(longest).min(longest));
            }
            let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
            let most = definition.timeouts.warmup;
            let warm_up = (most > Nanos::ZERO).then(|| {
                let last = options.stages.last().map(|stage| stage.to_per_s.max(1.0));
                let mut options = options.clone();
                (options.requests, options.loops, options.ramp_up) = (None, None, None);
                options.rate = options.rate.or(last);
                options.stages = Vec::new();
                options.duration = Some(most.as_duration());
                let interval = Nanos((most.0 / MIN_WARM_UP_INTERVALS).max(1)).min(MAX_WARM_UP_INTERVAL);
                LoadPlan::new(&options).map(|plan| CheckedLoad { options, plan: LoadPlan { interval, ..plan } })
            });
            let warm_up = warm_up.transpose().map_err(|error| error.to_string())?;
            Ok(Self { name: load.name.clone(), load: CheckedLoad { options, plan }, warm_up, coordinator: None })
        };
        definition.loads.iter().filter(|load| load.is_driven_at(point)).map(one).collect()
    }

    /// Whether a script drives its users.
    pub(super) fn has_script(&self) -> bool {
        self.load.options.program.is_some()
    }
}

/// Agents of a study's loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct StudyAgents<'a> {
    /// Agents of each load, if the study has any.
    pub(super) all_loads: Option<&'a agents::AgentSpec>,
    /// Otherwise agents of each load with a script: a process of its own.
    pub(super) scripts: &'a agents::AgentSpec,
}

/// Places the agents of each load; local agents run on the cores of the load.
///
/// # Errors
/// They cannot be placed, or it was interrupted.
pub(super) fn place_agents(
    drives: &mut [LoadDrive],
    specs: StudyAgents<'_>,
    split: &CpuSets,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), LoadError> {
    thread::scope(|scope| {
        let place = || -> Result<(), LoadError> {
            pin_to(&split.load_cpus);
            for drive in drives {
                let Some(agents) = specs.all_loads.or(drive.has_script().then_some(specs.scripts)) else { continue };
                drive.coordinator = Some(Mutex::new(Coordinator::place(agents, &drive.load.options, &mut || go_on())?));
            }
            Ok(())
        };
        scope.spawn(place).join().unwrap_or_else(|_| Err(load_thread_error()))
    })
}

/// Runs all loads until all of them are steady, the maximum warm-up is over, or `go_on` returns false. Returns the
/// result, None without a warm-up, and the agent that was lost, if one was.
///
/// # Errors
/// A load could not start.
pub(super) fn warm_up(
    drives: &[LoadDrive],
    split: &CpuSets,
    report: &ScriptReport<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Option<WarmUpResult>, Option<String>), LoadError> {
    let loads: Vec<(&LoadDrive, &CheckedLoad)> =
        drives.iter().filter_map(|drive| Some((drive, drive.warm_up.as_ref()?))).collect();
    if loads.is_empty() {
        return Ok((None, None));
    }
    let seen = Mutex::new(vec![steady::WarmUpDetector::default(); loads.len()]);
    let (steady, hopeless) = (AtomicBool::new(false), AtomicBool::new(false));
    // Number of consecutive intervals with failures only, by load.
    let failing = Mutex::new(vec![0; loads.len()]);
    let look = |index: usize, progress: &RunProgress<'_>| {
        if let Some(interval) = progress.interval {
            let mut seen = lock(&seen);
            seen[index].add(interval.ok as f64, interval.response.quantile_ms(0.5));
            if seen.iter().all(steady::WarmUpDetector::is_steady) {
                steady.store(true, Relaxed);
            }
            let mut failing = lock(&failing);
            failing[index] = if interval.ok == 0 && interval.failed > 0 { failing[index] + 1 } else { 0 };
            if failing[index] >= STEADY_INTERVALS {
                hopeless.store(true, Relaxed);
            }
        }
        go_on() && !steady.load(Relaxed) && !hopeless.load(Relaxed)
    };
    let runs = side_by_side(&loads, split, report, &look)?;
    let duration_s = runs.iter().map(|run| run.duration_s).fold(0.0, f64::max);
    Ok((Some(WarmUpResult { duration_s, steady: steady.load(Relaxed) }), runs.iter().find_map(lost_agent)))
}

/// Runs all loads at the same time, for the measurement.
///
/// # Errors
/// A load could not start.
pub(super) fn measure(
    drives: &[LoadDrive],
    split: &CpuSets,
    report: &ScriptReport<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Run>, LoadError> {
    let loads: Vec<(&LoadDrive, &CheckedLoad)> = drives.iter().map(|drive| (drive, &drive.load)).collect();
    side_by_side(&loads, split, report, &|_, _| go_on())
}

fn side_by_side(
    loads: &[(&LoadDrive, &CheckedLoad)],
    split: &CpuSets,
    report: &ScriptReport<'_>,
    look: &(dyn Fn(usize, &RunProgress<'_>) -> bool + Sync),
) -> Result<Vec<Run>, LoadError> {
    let drive = |index: usize| {
        pin_to(&split.load_cpus);
        let (drive, CheckedLoad { options, plan }) = loads[index];
        let mut watch = |progress: &RunProgress<'_>| look(index, progress);
        match &drive.coordinator {
            None => load::run(plan, &[], &mut watch, None),
            Some(crew) => {
                let mut crew = lock(crew);
                let run = crew.run(options, plan, &[], &mut watch);
                if let Some(script) = options.program.as_ref().and_then(ProgramOptions::script) {
                    crew.take_script_reports().iter().for_each(|left| report(script, left));
                }
                run
            }
        }
    };
    thread::scope(|scope| {
        let drive = &drive;
        let threads: Vec<_> = (0..loads.len()).map(|index| scope.spawn(move || drive(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(load_thread_error()))).collect()
    })
}

/// Agent of a run that was lost, and how, if one was.
pub(super) fn lost_agent(run: &Run) -> Option<String> {
    run.failed_agent().map(str::to_owned)
}

fn load_thread_error() -> LoadError {
    LoadError::System(std::io::Error::other("a thread of the load has ended"))
}

//! Drives the loads of a measurement: until the service is steady, and then for what counts.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::cell::WarmUp;
use super::cores::{Split, keep_to};
use super::definition::{Definition, Load};
use super::file::{LoadWords, options};
use super::placeholders::Values;
use crate::agents::{self, Crew};
use crate::decide::Nanos;
use crate::load::{self, LoadError, Options, Plan};
use crate::measure::steady::{self, STRETCHES};
use crate::measure::{Progress, Run};

/// A load of a measurement, checked.
#[derive(Debug)]
pub(super) struct Drive {
    /// Its name.
    pub(super) name: String,
    load: Checked,
    /// The same load without an end.
    warm_up: Option<Checked>,
    /// Who drives it, if not we ourselves.
    crew: Option<Mutex<Crew>>,
}

/// A load as asked for, and as checked.
#[derive(Debug)]
struct Checked {
    options: Options,
    plan: Plan,
}

/// A warm-up is looked at in so many stretches at least, ...
const PARTS: u64 = 20;
/// ... of at most this length.
const STRETCH: Nanos = Nanos::from_millis(250);

impl Drive {
    /// All loads that are driven at this point, with these placeholders. Variants of a round meet the same arrivals and
    /// bodies.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub(super) fn all(
        definition: &Definition,
        values: &Values,
        point: &[(String, String)],
        repeat: u64,
        words: &LoadWords<'_>,
    ) -> Result<Vec<Self>, String> {
        let one = |load: &Load| {
            let mut options = options(load, values, &definition.folder, words)?;
            options.seed = Some(definition.seed.wrapping_add(repeat));
            if let (Some(longest), true) = (definition.longest_load, options.stages.is_empty()) {
                options.duration = Some(options.duration.unwrap_or(longest).min(longest));
            }
            let plan = Plan::new(&options).map_err(|error| error.to_string())?;
            let most = definition.times.warm_up;
            let warm_up = (most > Nanos::ZERO).then(|| {
                let last = options.stages.last().map(|stage| stage.to_per_s.max(1.0));
                let mut options = options.clone();
                (options.requests, options.loops, options.ramp_up) = (None, None, None);
                options.rate = options.rate.or(last);
                options.stages = Vec::new();
                options.duration = Some(most.as_duration());
                let stretch = Nanos((most.0 / PARTS).max(1)).min(STRETCH);
                Plan::new(&options).map(|plan| Checked { options, plan: Plan { stretch, ..plan } })
            });
            let warm_up = warm_up.transpose().map_err(|error| error.to_string())?;
            Ok(Self { name: load.name.clone(), load: Checked { options, plan }, warm_up, crew: None })
        };
        definition.loads.iter().filter(|load| load.is_driven_at(point)).map(one).collect()
    }
}

/// Places agents for each load, on the cores of the load where they are on this machine.
///
/// # Errors
/// They cannot be placed, or somebody has had enough.
pub(super) fn place(
    drives: &mut [Drive],
    agents: &agents::Asked,
    split: &Split,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), LoadError> {
    thread::scope(|scope| {
        let place = || -> Result<(), LoadError> {
            keep_to(&split.load);
            for drive in drives {
                drive.crew = Some(Mutex::new(Crew::place(agents, &drive.load.options, &mut || go_on())?));
            }
            Ok(())
        };
        scope.spawn(place).join().unwrap_or_else(|_| Err(lost()))
    })
}

/// Drives all loads until all of them are steady, or the time is over; `go_on` can end it before. None if there is no
/// warm-up; and which agent was lost in it, if one was.
///
/// # Errors
/// Why a load could not start.
pub(super) fn warm_up(
    drives: &[Drive],
    split: &Split,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Option<WarmUp>, Option<String>), LoadError> {
    let loads: Vec<(&Drive, &Checked)> =
        drives.iter().filter_map(|drive| Some((drive, drive.warm_up.as_ref()?))).collect();
    if loads.is_empty() {
        return Ok((None, None));
    }
    let seen = Mutex::new(vec![steady::WarmUp::default(); loads.len()]);
    let (steady, hopeless) = (AtomicBool::new(false), AtomicBool::new(false));
    // Stretches in a row with failures alone.
    let failing = Mutex::new(vec![0; loads.len()]);
    let look = |index: usize, progress: &Progress<'_>| {
        if let Some(stretch) = progress.second {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen[index].add(stretch.ok as f64, stretch.response.quantile(0.5).as_millis_f64());
            if seen.iter().all(steady::WarmUp::is_steady) {
                steady.store(true, Relaxed);
            }
            let mut failing = failing.lock().unwrap_or_else(PoisonError::into_inner);
            failing[index] = if stretch.ok == 0 && stretch.failed > 0 { failing[index] + 1 } else { 0 };
            if failing[index] >= STRETCHES {
                hopeless.store(true, Relaxed);
            }
        }
        go_on() && !steady.load(Relaxed) && !hopeless.load(Relaxed)
    };
    let runs = side_by_side(&loads, split, &look)?;
    let took_s = runs.iter().map(|run| run.duration_s).fold(0.0, f64::max);
    Ok((Some(WarmUp { took_s, steady: steady.load(Relaxed) }), runs.iter().find_map(lost_agent)))
}

/// Drives all loads for what counts, at the same time.
///
/// # Errors
/// Why a load could not start.
pub(super) fn measure(
    drives: &[Drive],
    split: &Split,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Run>, LoadError> {
    let loads: Vec<(&Drive, &Checked)> = drives.iter().map(|drive| (drive, &drive.load)).collect();
    side_by_side(&loads, split, &|_, _| go_on())
}

fn side_by_side(
    loads: &[(&Drive, &Checked)],
    split: &Split,
    look: &(dyn Fn(usize, &Progress<'_>) -> bool + Sync),
) -> Result<Vec<Run>, LoadError> {
    let drive = |index: usize| {
        keep_to(&split.load);
        let (drive, Checked { options, plan }) = loads[index];
        let mut watch = |progress: &Progress<'_>| look(index, progress);
        match &drive.crew {
            None => load::run(plan, &[], &mut watch, None),
            Some(crew) => crew.lock().unwrap_or_else(PoisonError::into_inner).run(options, plan, &[], &mut watch),
        }
    };
    thread::scope(|scope| {
        let drive = &drive;
        let threads: Vec<_> = (0..loads.len()).map(|index| scope.spawn(move || drive(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).collect()
    })
}

/// Which agent of a run was lost, and how, if one was.
pub(super) fn lost_agent(run: &Run) -> Option<String> {
    run.lost_agent().map(str::to_owned)
}

fn lost() -> LoadError {
    LoadError::System(std::io::Error::other("a thread of the load has ended"))
}

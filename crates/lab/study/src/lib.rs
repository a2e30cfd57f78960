//! Experiments that compare variants of a service (`weir study`): each variant is started repeatedly, in random order,
//! and measured under the same load; verdicts are by round, with a confidence level.
//!
//! - [`mod@file`]: `study.toml` -> [`definition`]; `placeholders` in it
//! - `interleaving`: order of the measurements; [`measurement`]: one measurement; `measurement_data`: its runs and
//!   samples, too; `runner`: runs it, with `drive` (loads), `sampling` and `cpu_sets`
//! - `programs`: setup and start of the programs, with `packages`, `ready`, `guarded_process` (a supervised program)
//!   and `leftovers`
//! - `results_folder`: saved results, with which an interrupted study continues; [`StudyPoint`]: a point of the sweep, after which its folders are named
//! - [`findings`]: metrics and verdicts; `recordings`: runs and samples of a measurement
//! - [`text`], [`plotting`], [`page`]: text report, plots and HTML report; [`study_plot`]: one plot; `time_series`:
//!   plots over time; `client_series`: time series of clients
//!
//! Reasons: `docs/design/study.md`.

mod client_series;
mod cpu_sets;
pub mod definition;
mod definition_hash;
mod drive;
mod failure;
pub mod file;
pub mod findings;
mod guarded_process;
mod interleaving;
mod leftovers;
mod markdown_cell;
pub mod measurement;
mod measurement_data;
mod measurement_table;
mod median_table;
mod output_lines;
mod packages;
pub mod page;
mod placeholders;
pub mod plotting;
mod programs;
mod progress_view;
mod ready;
mod recordings;
mod results_folder;
mod runner;
mod sampling;
pub mod steps;
mod study_file;
pub mod study_plot;
mod study_point;
pub mod text;
mod time_series;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::json;

pub use self::file::DISALLOWED_FLAGS;
pub use self::guarded_process::{GUARD, Launcher};
pub use self::progress_view::StudyProgressView;
pub use self::study_file::StudyFile;
pub use self::study_point::StudyPoint;

use self::cpu_sets::CpuSets;
use self::definition::Definition;
use self::definition_hash::short_hash;
use self::failure::MeasurementError;
use self::file::LoadSyntax;
use self::findings::Findings;
use self::measurement::{Measurement, MeasurementFailure, MeasurementId};
use self::measurement_data::MeasurementData;
use self::programs::StudyPrograms;
use self::results_folder::ResultsFolder;
use self::runner::MeasurementRunner;
use weir_agents as agents;
use weir_base::Nanos;
use weir_command::exit;
use weir_load::program::ScriptOptions;
use weir_machine::clock::{self, Clock};
use weir_machine::system::SAMPLES_PROCESSES;
use weir_report::page::render;

/// Function that takes what a script has left at the end of a load.
pub type ScriptReport<'a> = dyn Fn(&ScriptOptions, &str) + Sync + 'a;

/// Study to run.
pub struct StudyOptions<'a> {
    /// The study.
    pub definition: &'a Definition,
    /// Syntax of loads.
    pub load_syntax: &'a LoadSyntax<'a>,
    /// Command that starts this program again.
    pub launcher: &'a Launcher,
    /// Agents that generate the load, instead of this process.
    pub agents: Option<&'a agents::AgentSpec>,
    /// Takes what a script has left at the end of a load.
    pub script_report: &'a ScriptReport<'a>,
    /// Results folder.
    pub out: &'a Path,
    /// Whether saved measurements are deleted and measured again.
    pub remeasure: bool,
}

impl fmt::Debug for StudyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudyOptions").field("out", &self.out).field("agents", &self.agents).finish_non_exhaustive()
    }
}

/// Progress event of a study.
#[derive(Debug)]
pub enum StudyEvent<'a> {
    /// Setup of a program begins.
    SettingUp(&'a str),
    /// Measurement begins.
    Started(&'a MeasurementId, StudyProgress),
    /// Measurement is done.
    Finished(&'a Measurement, StudyProgress),
}

/// Finished measurements out of all, and an estimate of the remaining time.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyProgress {
    /// Number of finished measurements, including saved ones.
    pub done: usize,
    /// Number of all measurements.
    pub total: usize,
    /// Estimate of the remaining time; None before the first measurement.
    pub remaining: Option<Nanos>,
}

/// Result of a study: all its measurements.
#[derive(Debug)]
pub struct StudyOutcome {
    /// Measurements, by variant, point and round.
    pub measurements: Vec<Measurement>,
    /// Number of missing measurements.
    pub missing: usize,
    /// Whether it was interrupted (Ctrl-C).
    pub interrupted: bool,
    /// Whether it ended by its timeout.
    pub out_of_time: bool,
    /// Whether service and load had separate cores.
    pub disjoint_cpus: bool,
    /// Results folder.
    folder: ResultsFolder,
}

impl StudyOutcome {
    /// Results folder.
    fn folder(&self) -> &ResultsFolder {
        &self.folder
    }

    /// First agent that was lost, with the reason.
    pub fn lost_agent(&self) -> Option<&str> {
        self.measurements.iter().find_map(|cell| cell.lost_agent.as_deref())
    }

    /// Exit code of the command; `strict` is for measurements that are not trusted.
    pub fn exit_code(&self, strict: bool) -> u8 {
        if self.interrupted {
            return exit::INTERRUPTED;
        }
        if self.lost_agent().is_some() {
            return exit::UNTRUSTED;
        }
        let mut measured = self.measurements.iter().filter(|cell| cell.is_measured()).peekable();
        if measured.peek().is_none() {
            // Without any measurement there is no result.
            return exit::USAGE;
        }
        if strict && !measured.all(Measurement::is_trusted) { exit::UNTRUSTED } else { exit::OK }
    }
}

/// Report files that were written.
#[derive(Debug)]
pub struct ReportFiles {
    /// HTML report.
    pub html: String,
}

/// Writes report.md, report.html, study.json, and the plots with their data.
///
/// # Errors
/// A file cannot be written: the reason, in one line.
pub fn write_report(findings: &Findings<'_>) -> Result<ReportFiles, String> {
    let folder = findings.outcome.folder();
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", folder.path().display());
    let figures = plotting::all_plots(findings);
    for figure in &figures {
        folder.write(&format!("plots/{}.svg", figure.name), figure.plot.svg().as_bytes()).map_err(wrong)?;
        folder.write(&format!("plots/{}.csv", figure.name), figure.plot.csv().as_bytes()).map_err(wrong)?;
    }
    folder.write("report.md", text::markdown(findings, &figures).as_bytes()).map_err(wrong)?;
    let html = render(&page::of_findings(findings, &figures));
    folder.write("report.html", html.as_bytes()).map_err(wrong)?;
    folder.write("study.json", format!("{:#}\n", text::json(findings)).as_bytes()).map_err(wrong)?;
    let table = measurement_table::measurement_table(findings);
    folder.write(measurement_table::MEASUREMENTS_FILE, table.as_bytes()).map_err(wrong)?;
    Ok(ReportFiles { html })
}

/// Runs all measurements that are not saved yet.
///
/// # Errors
/// The results cannot be saved: the reason, in one line.
pub fn run(
    options: &StudyOptions<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    report: &mut dyn FnMut(&StudyEvent<'_>),
) -> Result<StudyOutcome, String> {
    let StudyOptions { definition, load_syntax, launcher, agents, script_report, out, remeasure } = *options;
    if definition.limits.memory_bytes.is_some() && !SAMPLES_PROCESSES {
        return Err("limits.memory: memory is sampled on Linux only; leave it out".to_owned());
    }
    let folder = ResultsFolder::open(out)?;
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", out.display());
    if remeasure {
        folder.delete_measurements().map_err(wrong)?;
    }
    let token = short_hash(&format!("{}:{}:{}", std::process::id(), clock::unix_s(), out.display()));
    let split = CpuSets::of(definition.limits.cpus);
    let points = definition.points();
    let order = interleaving::interleave(definition.variants.len(), points.len(), definition.repeats, definition.seed);
    let mut cells: BTreeMap<(usize, usize, u64), Measurement> = BTreeMap::new();
    let path = |place: &MeasurementId| {
        let variant = &definition.variants[place.variant].program.name;
        folder.measurement_path(variant, &points[place.point], place.repeat)
    };
    let hash = |place: &MeasurementId| measurement_hash(options, place, &points[place.point], &split);
    let key = |place: &MeasurementId| (place.variant, place.point, place.repeat);
    for place in &order {
        // Failed measurements, and those that lost an agent, are repeated.
        if let Some(cell) = folder.read_measurement(&path(place), &hash(place)).filter(Measurement::is_complete) {
            cells.insert(key(place), cell);
        }
    }
    let todo: Vec<&MeasurementId> = order.iter().filter(|place| !cells.contains_key(&key(place))).collect();
    let clock = Clock::started_ago(Nanos::ZERO);
    let in_time = || clock.now() < definition.timeouts.study;
    if !todo.is_empty() {
        folder.mark_running(&token).map_err(wrong)?;
    }
    let mut programs =
        StudyPrograms { definition, launcher, token: &token, cpu_sets: &split, go_on, environments: BTreeMap::new() };
    let broken = match todo.is_empty() {
        true => BTreeMap::new(),
        false => set_up(&mut programs, definition, report),
    };
    let runner = MeasurementRunner { programs, load_syntax, agents, script_report };
    let (mut took, mut made) = (0.0, 0_u32);
    for place in todo {
        if !go_on() || !in_time() {
            break;
        }
        let progress = |done: usize, took: f64, made: u32| StudyProgress {
            done,
            total: order.len(),
            remaining: (made > 0).then(|| Nanos::from_secs_f64(took / f64::from(made) * (order.len() - done) as f64)),
        };
        report(&StudyEvent::Started(place, progress(cells.len(), took, made)));
        let (path, point) = (path(place), &points[place.point]);
        // Programs may write to this folder.
        std::fs::create_dir_all(&path).map_err(wrong)?;
        let mut measured = match broken.get(&place.variant) {
            Some(failure) => failed_measurement(definition, place, point, failure),
            None => match runner.measure(place, point, &path) {
                Ok(measured) => measured,
                Err(_) => break,
            },
        };
        measured.measurement.definition_hash = hash(place);
        folder.save_measurement(&path, &measured).map_err(wrong)?;
        took += measured.measurement.duration_s;
        made += 1;
        let cell = cells.entry(key(place)).or_insert(measured.measurement).clone();
        report(&StudyEvent::Finished(&cell, progress(cells.len(), took, made)));
    }
    folder.clear_running().map_err(wrong)?;
    Ok(StudyOutcome {
        missing: order.len() - cells.len(),
        interrupted: !go_on(),
        out_of_time: !in_time(),
        disjoint_cpus: split.are_disjoint(),
        measurements: cells.into_values().collect(),
        folder,
    })
}

/// Sets up all programs: failures, by variant. A variant with one is not started.
fn set_up(
    programs: &mut StudyPrograms<'_>,
    definition: &Definition,
    report: &mut dyn FnMut(&StudyEvent<'_>),
) -> BTreeMap<usize, MeasurementFailure> {
    let mut broken = BTreeMap::new();
    let needs = |program: &definition::Program| !program.setup.is_empty() || !program.requirements.is_empty();
    for service in definition.services.iter().filter(|service| needs(service)) {
        report(&StudyEvent::SettingUp(&service.name));
        if let Err(MeasurementError::Failed(why)) =
            programs.set_up(service, None).map_err(|why| why.attributed_to(&service.name))
        {
            // No variant can be measured without the service.
            broken.extend((0..definition.variants.len()).map(|index| (index, why.clone())));
        }
    }
    for (index, variant) in definition.variants.iter().enumerate().filter(|(_, variant)| needs(&variant.program)) {
        report(&StudyEvent::SettingUp(&variant.program.name));
        if let Err(MeasurementError::Failed(why)) = programs.set_up(&variant.program, Some(variant)) {
            broken.insert(index, MeasurementFailure { reason: format!("set-up: {}", why.reason), ..why });
        }
    }
    broken
}

fn failed_measurement(
    definition: &Definition,
    place: &MeasurementId,
    point: &StudyPoint,
    why: &MeasurementFailure,
) -> MeasurementData {
    let cell = Measurement {
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        variant: definition.variants[place.variant].program.name.clone(),
        point: point.clone(),
        repeat: place.repeat,
        started_unix_s: clock::unix_s(),
        failure: Some(why.clone()),
        ..Measurement::default()
    };
    MeasurementData { measurement: cell, ..MeasurementData::default() }
}

/// Hash of everything that defines a measurement; a saved one counts only if it has the same.
fn measurement_hash(options: &StudyOptions<'_>, place: &MeasurementId, point: &StudyPoint, split: &CpuSets) -> String {
    let definition = options.definition;
    let mut all = json!({
        "variant": definition.variants[place.variant],
        "values": definition.values,
        "services": definition.services,
        "loads": definition.loads,
        "metrics": definition.client_metrics,
        "point": point,
        "repeat": place.repeat,
        "seed": definition.seed,
        "limits": definition.limits,
        "warmup": definition.timeouts.warmup.0,
        "quick": definition.quick,
        "cores": [split.service_cpus, split.load_cpus],
    });
    if let (Some(agents), Some(all)) = (options.agents, all.as_object_mut()) {
        all.insert("agents".to_owned(), json!([agents.backend.to_string(), agents.agents, agents.per_node]));
    }
    short_hash(&all.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
pub(crate) mod tests;

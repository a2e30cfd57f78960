//! Which variant is better, and is it real? Starts each of them again and again, drives the same load at it, and says.
//!
//! - [`mod@file`]: `study.toml` -> [`definition`]; `placeholders` in it
//! - `order`: which measurement comes when; [`cell`]: one of them; `conduct`: makes it, with
//!   `running` (a program under a guard), `ready`, `packages`, `drive` (its loads), `sampling`, `cores`
//! - `folder`: what is kept, so that a study that was interrupted goes on
//! - [`findings`]: what the measurements say; `recorded`: what there is beside figures
//! - [`text`], [`figures`], [`page`]: the findings as a report, as plots and as a page; `courses`: plots over time; `series`:
//!   how it went with clients
//!
//! `docs/design/study.md` has the reasons.

pub mod cell;
mod conduct;
mod cores;
mod courses;
pub mod definition;
mod drive;
pub mod figures;
pub mod file;
pub mod findings;
mod fingerprint;
mod folder;
mod order;
mod packages;
pub mod page;
mod placeholders;
mod ready;
mod recorded;
mod running;
#[cfg(test)]
mod sample;
mod sampling;
mod series;
pub mod text;
mod trouble;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

pub use self::folder::point_name;
pub use self::running::{GUARD, Launcher};

use self::cell::{Measurement, MeasurementFailure, MeasurementId};
use self::conduct::{MeasurementData, MeasurementRunner};
use self::cores::CpuSets;
use self::definition::Definition;
use self::file::LoadSyntax;
use self::findings::Findings;
use self::fingerprint::short_hash;
use self::folder::ResultsFolder;
use self::trouble::MeasurementError;
use crate::agents;
use crate::decide::Nanos;
use crate::machine::clock::{self, Clock};
use crate::report::page::render;

/// A study to run.
#[derive(Debug)]
pub struct StudyOptions<'a> {
    /// What it is to find out.
    pub definition: &'a Definition,
    /// How loads are written.
    pub load_syntax: &'a LoadSyntax<'a>,
    /// How we start ourselves anew.
    pub launcher: &'a Launcher,
    /// Who drives the loads, if not we ourselves.
    pub agents: Option<&'a agents::AgentSpec>,
    /// Where the results go.
    pub out: &'a Path,
    /// Whether measurements that were made before are forgotten.
    pub remeasure: bool,
}

/// What happens while a study runs.
#[derive(Debug)]
pub enum StudyEvent<'a> {
    /// A program is set up.
    SettingUp(&'a str),
    /// A measurement begins; how far the study is.
    Started(&'a MeasurementId, StudyProgress),
    /// It is done.
    Finished(&'a Measurement, StudyProgress),
}

/// How far a study is.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyProgress {
    /// Measurements done, those that were kept among them.
    pub done: usize,
    /// All measurements.
    pub total: usize,
    /// About so much time is left, once that can be said.
    pub remaining: Option<Nanos>,
}

/// What a study found: all its measurements.
#[derive(Debug)]
pub struct StudyOutcome {
    /// In the order of variants, points and rounds.
    pub measurements: Vec<Measurement>,
    /// Measurements that were not made.
    pub missing: usize,
    /// Whether somebody has had enough.
    pub interrupted: bool,
    /// Whether its time was over.
    pub out_of_time: bool,
    /// Whether service and load had cores of their own.
    pub disjoint_cpus: bool,
    /// The folder.
    folder: ResultsFolder,
}

impl StudyOutcome {
    /// Where the results are.
    fn folder(&self) -> &ResultsFolder {
        &self.folder
    }
}

/// What was written, for whoever wants it elsewhere, too.
#[derive(Debug)]
pub struct ReportFiles {
    /// The page.
    pub html: String,
}

/// Writes the report, the page, its plots and the data behind them.
///
/// # Errors
/// They cannot be written: why, in one line.
pub fn write_report(findings: &Findings<'_>) -> Result<ReportFiles, String> {
    let folder = findings.outcome.folder();
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", folder.path().display());
    let figures = figures::all_plots(findings);
    for figure in &figures {
        folder.write(&format!("plots/{}.svg", figure.name), figure.plot.svg().as_bytes()).map_err(wrong)?;
        folder.write(&format!("plots/{}.csv", figure.name), figure.plot.csv().as_bytes()).map_err(wrong)?;
        let png = figure.plot.png().map_err(|why| format!("cannot draw plots/{}.png: {why}", figure.name))?;
        folder.write(&format!("plots/{}.png", figure.name), &png).map_err(wrong)?;
    }
    folder.write("report.md", text::markdown(findings, &figures).as_bytes()).map_err(wrong)?;
    let html = render(&page::of_findings(findings, &figures));
    folder.write("report.html", html.as_bytes()).map_err(wrong)?;
    folder.write("study.json", format!("{:#}\n", text::json(findings)).as_bytes()).map_err(wrong)?;
    Ok(ReportFiles { html })
}

/// Makes all measurements that are not there yet.
///
/// # Errors
/// The results cannot be kept: why, in one line.
pub fn run(
    asked: &StudyOptions<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    tell: &mut dyn FnMut(&StudyEvent<'_>),
) -> Result<StudyOutcome, String> {
    let StudyOptions { definition, load_syntax: words, launcher, agents, out, remeasure: fresh } = *asked;
    let folder = ResultsFolder::open(out)?;
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", out.display());
    if fresh {
        folder.delete_measurements().map_err(wrong)?;
    }
    let token = short_hash(&format!("{}:{}:{}", std::process::id(), clock::unix_s(), out.display()));
    let split = CpuSets::of(definition.limits.cpus);
    let points = definition.points();
    let order = order::interleave(definition.variants.len(), points.len(), definition.repeats, definition.seed);
    let mut cells: BTreeMap<(usize, usize, u64), Measurement> = BTreeMap::new();
    let path = |place: &MeasurementId| {
        let variant = &definition.variants[place.variant].program.name;
        folder.measurement_path(variant, &points[place.point], place.repeat)
    };
    let print = |place: &MeasurementId| measurement_hash(asked, place, &points[place.point], &split);
    let key = |place: &MeasurementId| (place.variant, place.point, place.repeat);
    for place in &order {
        // What has failed, or was left by an agent, is tried again: it has no figures to lose, or not all of them.
        if let Some(cell) = folder.read_measurement(&path(place), &print(place)).filter(Measurement::is_complete) {
            cells.insert(key(place), cell);
        }
    }
    let todo: Vec<&MeasurementId> = order.iter().filter(|place| !cells.contains_key(&key(place))).collect();
    let clock = Clock::started_ago(Nanos::ZERO);
    let in_time = || clock.now() < definition.times.study;
    if !todo.is_empty() {
        folder.mark_running(&token).map_err(wrong)?;
    }
    let mut conductor = MeasurementRunner {
        definition,
        load_syntax: words,
        launcher,
        agents,
        token: &token,
        cpu_sets: &split,
        go_on,
        environments: BTreeMap::new(),
    };
    let broken = match todo.is_empty() {
        true => BTreeMap::new(),
        false => set_up(&mut conductor, definition, tell),
    };
    let (mut took, mut made) = (0.0, 0_u32);
    for place in todo {
        if !go_on() || !in_time() {
            break;
        }
        let far = |done: usize, took: f64, made: u32| StudyProgress {
            done,
            total: order.len(),
            remaining: (made > 0).then(|| Nanos::from_secs_f64(took / f64::from(made) * (order.len() - done) as f64)),
        };
        tell(&StudyEvent::Started(place, far(cells.len(), took, made)));
        let (path, point) = (path(place), &points[place.point]);
        // Programs may write there.
        std::fs::create_dir_all(&path).map_err(wrong)?;
        let mut measured = match broken.get(&place.variant) {
            Some(failure) => failed_measurement(definition, place, point, failure),
            None => match conductor.measure(place, point, &path) {
                Ok(measured) => measured,
                Err(_) => break,
            },
        };
        measured.measurement.definition = print(place);
        folder.save_measurement(&path, &measured).map_err(wrong)?;
        took += measured.measurement.duration_s;
        made += 1;
        let cell = cells.entry(key(place)).or_insert(measured.measurement).clone();
        tell(&StudyEvent::Finished(&cell, far(cells.len(), took, made)));
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

/// Sets up all programs; what fails has no measurement but the reason.
fn set_up(
    conductor: &mut MeasurementRunner<'_>,
    definition: &Definition,
    tell: &mut dyn FnMut(&StudyEvent<'_>),
) -> BTreeMap<usize, MeasurementFailure> {
    let mut broken = BTreeMap::new();
    let needs = |program: &definition::Program| !program.setup.is_empty() || !program.requirements.is_empty();
    for service in definition.services.iter().filter(|service| needs(service)) {
        tell(&StudyEvent::SettingUp(&service.name));
        if let Err(MeasurementError::Failed(why)) =
            conductor.set_up(service, None).map_err(|why| why.attributed_to(&service.name))
        {
            // Nobody can be measured without it.
            broken.extend((0..definition.variants.len()).map(|index| (index, why.clone())));
        }
    }
    for (index, variant) in definition.variants.iter().enumerate().filter(|(_, variant)| needs(&variant.program)) {
        tell(&StudyEvent::SettingUp(&variant.program.name));
        if let Err(MeasurementError::Failed(why)) = conductor.set_up(&variant.program, Some(variant)) {
            broken.insert(index, MeasurementFailure { reason: format!("set-up: {}", why.reason), ..why });
        }
    }
    broken
}

fn failed_measurement(
    definition: &Definition,
    place: &MeasurementId,
    point: &[(String, String)],
    why: &MeasurementFailure,
) -> MeasurementData {
    let cell = Measurement {
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        variant: definition.variants[place.variant].program.name.clone(),
        point: point.to_vec(),
        repeat: place.repeat,
        started_unix_s: clock::unix_s(),
        failure: Some(why.clone()),
        ..Measurement::default()
    };
    MeasurementData { measurement: cell, ..MeasurementData::default() }
}

/// A hash of all that makes up a measurement: it counts for this study as long as that is the same.
fn measurement_hash(
    asked: &StudyOptions<'_>,
    place: &MeasurementId,
    point: &[(String, String)],
    split: &CpuSets,
) -> String {
    let definition = asked.definition;
    let mut all = json!({
        "variant": definition.variants[place.variant],
        "values": definition.values,
        "services": definition.services,
        "loads": definition.loads,
        "figures": definition.client_metrics,
        "point": point,
        "repeat": place.repeat,
        "seed": definition.seed,
        "limits": definition.limits,
        "warm_up": definition.times.warm_up.0,
        "quick": definition.quick,
        "cores": [split.service_cpus, split.load_cpus],
    });
    if let (Some(agents), Some(all)) = (asked.agents, all.as_object_mut()) {
        all.insert("agents".to_owned(), json!([agents.backend.to_string(), agents.agents, agents.per_node]));
    }
    short_hash(&all.to_string())
}

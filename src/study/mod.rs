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

pub use self::folder::name_of;
pub use self::running::{GUARD, Launcher};

use self::cell::{Cell, Failure, Place};
use self::conduct::{Conductor, Measured};
use self::cores::Split;
use self::definition::Definition;
use self::file::LoadWords;
use self::findings::Findings;
use self::fingerprint::fingerprint;
use self::folder::Folder;
use self::trouble::Trouble;
use crate::agents;
use crate::decide::Nanos;
use crate::machine::clock::{self, Clock};
use crate::report::page::render;

/// A study to run.
#[derive(Debug)]
pub struct Asked<'a> {
    /// What it is to find out.
    pub definition: &'a Definition,
    /// How loads are written.
    pub words: &'a LoadWords<'a>,
    /// How we start ourselves anew.
    pub launcher: &'a Launcher,
    /// Who drives the loads, if not we ourselves.
    pub agents: Option<&'a agents::Asked>,
    /// Where the results go.
    pub out: &'a Path,
    /// Whether measurements that were made before are forgotten.
    pub fresh: bool,
}

/// What happens while a study runs.
#[derive(Debug)]
pub enum News<'a> {
    /// A program is set up.
    SettingUp(&'a str),
    /// A measurement begins; how far the study is.
    Begins(&'a Place, Far),
    /// It is done.
    Done(&'a Cell, Far),
}

/// How far a study is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Far {
    /// Measurements done, those that were kept among them.
    pub done: usize,
    /// All measurements.
    pub of: usize,
    /// About so much time is left, once that can be said.
    pub left: Option<Nanos>,
}

/// What a study found: all its measurements.
#[derive(Debug)]
pub struct Outcome {
    /// In the order of variants, points and rounds.
    pub cells: Vec<Cell>,
    /// Measurements that were not made.
    pub missing: usize,
    /// Whether somebody has had enough.
    pub interrupted: bool,
    /// Whether its time was over.
    pub out_of_time: bool,
    /// Whether service and load had cores of their own.
    pub apart: bool,
    /// The folder.
    folder: Folder,
}

impl Outcome {
    /// Where the results are.
    fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// What was written, for whoever wants it elsewhere, too.
#[derive(Debug)]
pub struct Kept {
    /// The page.
    pub html: String,
}

/// Writes the report, the page, its plots and the data behind them.
///
/// # Errors
/// They cannot be written: why, in one line.
pub fn keep(findings: &Findings<'_>) -> Result<Kept, String> {
    let folder = findings.outcome.folder();
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", folder.path().display());
    let figures = figures::all(findings);
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
    Ok(Kept { html })
}

/// Makes all measurements that are not there yet.
///
/// # Errors
/// The results cannot be kept: why, in one line.
pub fn run(
    asked: &Asked<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    tell: &mut dyn FnMut(&News<'_>),
) -> Result<Outcome, String> {
    let Asked { definition, words, launcher, agents, out, fresh } = *asked;
    let folder = Folder::open(out)?;
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", out.display());
    if fresh {
        folder.forget().map_err(wrong)?;
    }
    let token = fingerprint(&format!("{}:{}:{}", std::process::id(), clock::unix_s(), out.display()));
    let split = Split::of(definition.limits.cpus);
    let points = definition.points();
    let order = order::order(definition.variants.len(), points.len(), definition.repeats, definition.seed);
    let mut cells: BTreeMap<(usize, usize, u64), Cell> = BTreeMap::new();
    let path = |place: &Place| {
        let variant = &definition.variants[place.variant].program.name;
        folder.cell_path(variant, &points[place.point], place.repeat)
    };
    let print = |place: &Place| of_definition(asked, place, &points[place.point], &split);
    let key = |place: &Place| (place.variant, place.point, place.repeat);
    for place in &order {
        // What has failed, or was left by an agent, is tried again: it has no figures to lose, or not all of them.
        if let Some(cell) = folder.kept(&path(place), &print(place)).filter(Cell::is_whole) {
            cells.insert(key(place), cell);
        }
    }
    let todo: Vec<&Place> = order.iter().filter(|place| !cells.contains_key(&key(place))).collect();
    let clock = Clock::started(Nanos::ZERO);
    let in_time = || clock.now() < definition.times.study;
    if !todo.is_empty() {
        folder.begin(&token).map_err(wrong)?;
    }
    let mut conductor = Conductor {
        definition,
        words,
        launcher,
        agents,
        token: &token,
        split: &split,
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
        let far = |done: usize, took: f64, made: u32| Far {
            done,
            of: order.len(),
            left: (made > 0).then(|| Nanos::from_secs_f64(took / f64::from(made) * (order.len() - done) as f64)),
        };
        tell(&News::Begins(place, far(cells.len(), took, made)));
        let (path, point) = (path(place), &points[place.point]);
        // Programs may write there.
        std::fs::create_dir_all(&path).map_err(wrong)?;
        let mut measured = match broken.get(&place.variant) {
            Some(failure) => failed(definition, place, point, failure),
            None => match conductor.measure(place, point, &path) {
                Ok(measured) => measured,
                Err(_) => break,
            },
        };
        measured.cell.definition = print(place);
        folder.keep(&path, &measured).map_err(wrong)?;
        took += measured.cell.took_s;
        made += 1;
        let cell = cells.entry(key(place)).or_insert(measured.cell).clone();
        tell(&News::Done(&cell, far(cells.len(), took, made)));
    }
    folder.finish().map_err(wrong)?;
    Ok(Outcome {
        missing: order.len() - cells.len(),
        interrupted: !go_on(),
        out_of_time: !in_time(),
        apart: split.is_apart(),
        cells: cells.into_values().collect(),
        folder,
    })
}

/// Sets up all programs; what fails has no measurement but the reason.
fn set_up(
    conductor: &mut Conductor<'_>,
    definition: &Definition,
    tell: &mut dyn FnMut(&News<'_>),
) -> BTreeMap<usize, Failure> {
    let mut broken = BTreeMap::new();
    let needs = |program: &definition::Program| !program.setup.is_empty() || !program.requirements.is_empty();
    for service in definition.services.iter().filter(|service| needs(service)) {
        tell(&News::SettingUp(&service.name));
        if let Err(Trouble::Failed(why)) = conductor.set_up(service, None).map_err(|why| why.by(&service.name)) {
            // Nobody can be measured without it.
            broken.extend((0..definition.variants.len()).map(|index| (index, why.clone())));
        }
    }
    for (index, variant) in definition.variants.iter().enumerate().filter(|(_, variant)| needs(&variant.program)) {
        tell(&News::SettingUp(&variant.program.name));
        if let Err(Trouble::Failed(why)) = conductor.set_up(&variant.program, Some(variant)) {
            broken.insert(index, Failure { why: format!("set-up: {}", why.why), ..why });
        }
    }
    broken
}

fn failed(definition: &Definition, place: &Place, point: &[(String, String)], why: &Failure) -> Measured {
    let cell = Cell {
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        variant: definition.variants[place.variant].program.name.clone(),
        point: point.to_vec(),
        repeat: place.repeat,
        started_unix_s: clock::unix_s(),
        failure: Some(why.clone()),
        ..Cell::default()
    };
    Measured { cell, ..Measured::default() }
}

/// A hash of all that makes up a measurement: it counts for this study as long as that is the same.
fn of_definition(asked: &Asked<'_>, place: &Place, point: &[(String, String)], split: &Split) -> String {
    let definition = asked.definition;
    let mut all = json!({
        "variant": definition.variants[place.variant],
        "values": definition.values,
        "services": definition.services,
        "loads": definition.loads,
        "figures": definition.figures,
        "point": point,
        "repeat": place.repeat,
        "seed": definition.seed,
        "limits": definition.limits,
        "warm_up": definition.times.warm_up.0,
        "quick": definition.quick,
        "cores": [split.service, split.load],
    });
    if let (Some(agents), Some(all)) = (asked.agents, all.as_object_mut()) {
        all.insert("agents".to_owned(), json!([agents.on.to_string(), agents.agents, agents.per_node]));
    }
    fingerprint(&all.to_string())
}

//! Saved runs that the page shows: those of a store, or of a folder of results.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::{HistoryError, RunFilter, RunNote, RunReference, RunStore, StoredRun, figures_of};
use weir_machine::lock::lock;
use weir_measure::{LoadModel, Run};

/// Maximum size of a result in a folder, in bytes.
const MAX_RESULT_BYTES: u64 = 256 << 20;

/// Beginning of the name of a file without a label.
pub const NO_LABEL: &str = "run";

/// Saved runs.
#[derive(Debug)]
pub enum RunLibrary {
    /// Store of `weir load --save`; it need not be there yet.
    Store(PathBuf),
    /// Folder of results of `weir load --out`.
    Folder(PathBuf, Mutex<Vec<ResultFile>>),
}

/// Result in a folder; its number is its place among all that were seen, from 1 on.
#[derive(Debug)]
pub struct ResultFile {
    path: PathBuf,
    /// Time of the last change in seconds and nanoseconds, and size.
    stamp: (i64, i64, u64),
    /// Nothing: not a run of weir, or gone.
    run: Option<StoredRun>,
}

impl RunLibrary {
    /// Runs of a store, or of a folder.
    ///
    /// # Errors
    /// One line, if it is neither.
    pub fn open(path: &Path) -> Result<Self, String> {
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned(), Mutex::default()));
        }
        match RunStore::open(path) {
            Ok(_) | Err(HistoryError::Missing(_)) => Ok(Self::Store(path.to_owned())),
            Err(HistoryError::Other(_)) if is_unmade(path) => Ok(Self::Store(path.to_owned())),
            Err(error) => Err(format!("--store: {error}")),
        }
    }

    /// Runs that pass a filter, by their start.
    ///
    /// # Errors
    /// One line, if they cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<StoredRun>, String> {
        match self {
            Self::Store(path) => match RunStore::open(path) {
                Err(HistoryError::Missing(_)) => Ok(Vec::new()),
                Err(HistoryError::Other(_)) if is_unmade(path) => Ok(Vec::new()),
                store => store.and_then(|store| store.runs(filter)).map_err(|error| error.to_string()),
            },
            Self::Folder(folder, known) => {
                let mut known = lock(known);
                look_at(folder, &mut known)?;
                let passes = |run: &&StoredRun| {
                    run.plan.contains(&filter.plan)
                        && (filter.label.is_empty() || run.note.label == filter.label)
                        && run.note.commit.starts_with(&filter.commit)
                };
                let mut runs: Vec<StoredRun> =
                    known.iter().filter_map(|file| file.run.as_ref()).filter(passes).cloned().collect();
                runs.sort_by(|a, b| a.started_unix_s.total_cmp(&b.started_unix_s).then(a.id.cmp(&b.id)));
                let surplus = filter.limit.map_or(0, |limit| runs.len().saturating_sub(limit as usize));
                runs.drain(..surplus);
                Ok(runs)
            }
        }
    }

    /// A run as a whole.
    ///
    /// # Errors
    /// One line: there is none of this number, or it is damaged.
    pub fn run(&self, id: i64) -> Result<Run, String> {
        match self {
            Self::Store(path) => {
                let found = RunStore::open(path).and_then(|store| store.run(RunReference::Id(id)));
                found.map(|(_, run)| run).map_err(|error| error.to_string())
            }
            Self::Folder(folder, known) => {
                let mut known = lock(known);
                look_at(folder, &mut known)?;
                let file = usize::try_from(id - 1).ok().and_then(|at| known.get(at)).filter(|file| file.run.is_some());
                let path = &file.ok_or_else(|| format!("unknown run #{id}; its file may have been removed"))?.path;
                read(path)
            }
        }
    }

    /// Label that a run was saved with; empty without one.
    pub fn label(&self, id: i64) -> String {
        let runs = self.runs(&RunFilter::default()).unwrap_or_default();
        let label = runs.into_iter().find(|run| run.id == id).map(|run| run.note.label).unwrap_or_default();
        match self {
            Self::Store(_) => label,
            // The page puts the time behind it.
            Self::Folder(..) => label_of_file(&label).to_owned(),
        }
    }

    /// Folder for files that are uploaded: beside the runs.
    pub fn uploads(&self) -> PathBuf {
        match self {
            Self::Store(path) => path.parent().unwrap_or(Path::new("")).join("uploads"),
            Self::Folder(folder, _) => folder.join("uploads"),
        }
    }
}

/// Whether a store is a file without anything: a run that is being saved, of another page maybe, is about to make it.
fn is_unmade(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// Looks which results of a folder are new, changed or gone. Those of other kinds are left out.
fn look_at(folder: &Path, known: &mut Vec<ResultFile>) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut found: Vec<(PathBuf, Metadata)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let is_result = path.extension().is_some_and(|extension| extension == "json");
        // A file may go between the list and the look at it.
        let metadata = fs::metadata(&path).ok().filter(|metadata| is_result && metadata.is_file());
        found.extend(metadata.map(|metadata| (path, metadata)));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    for file in known.iter_mut().filter(|file| found.iter().all(|(path, _)| *path != file.path)) {
        file.run = None;
        file.stamp = (0, 0, 0);
    }
    for (path, metadata) in found {
        let stamp = (metadata.mtime(), metadata.mtime_nsec(), metadata.len());
        let at = known.iter().position(|file| file.path == path).unwrap_or_else(|| {
            known.push(ResultFile { path: path.clone(), stamp: (0, 0, 0), run: None });
            known.len() - 1
        });
        if known[at].stamp != stamp {
            let id = i64::try_from(at + 1).unwrap_or(i64::MAX);
            let run = (metadata.len() <= MAX_RESULT_BYTES).then(|| read(&path).ok()).flatten();
            known[at].run = run.map(|run| stored(id, &path, &run));
            known[at].stamp = stamp;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Run, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    Run::from_json(&text).map_err(|why| format!("{shown}: {why}"))
}

/// Label in the name of a file of the page's, `LABEL-YYYYMMDD-hhmmss.mmm`; empty without one, and for other files.
fn label_of_file(name: &str) -> &str {
    let is_time = |text: &str| {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "00000000-000000.000"
    };
    let at = name.len().checked_sub("-00000000-000000.000".len());
    let parts = at.and_then(|at| Some((name.get(..at)?, name.get(at..)?.strip_prefix('-')?)));
    match parts {
        Some((label, time)) if is_time(time) && label != NO_LABEL => label,
        _ => "",
    }
}

/// A result of a folder as one of a store; its label is the name of the file.
fn stored(id: i64, path: &Path, run: &Run) -> StoredRun {
    let label = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    StoredRun {
        id,
        started_unix_s: run.manifest.started_unix_s,
        note: RunNote { label, commit: String::new() },
        plan: StoredRun::plan_of(run),
        offered_per_s: (run.model == LoadModel::Open).then_some(run.rate_per_s.offered),
        machine: StoredRun::machine_of(run),
        is_trusted: run.trust.ok,
        is_interrupted: run.interrupted,
        missed: run.slo.iter().filter(|objective| !objective.ok).count() as u64,
        figures: figures_of(run),
    }
}

#[cfg(test)]
mod tests {
    use super::label_of_file;

    #[test]
    fn a_label_is_in_front_of_the_time() {
        assert_eq!(label_of_file("main-2-20260102-030405.678"), "main-2");
        for without in ["run-20260102-030405.678", "main", "main-20260102-03040a.678", "", "é-000000-000000.000"] {
            assert_eq!(label_of_file(without), "", "{without}");
        }
    }
}

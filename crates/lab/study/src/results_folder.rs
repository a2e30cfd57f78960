//! Results folder of a study: measurements as they are made, and a marker of what runs, for cleaning up after a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use weir_machine::private_file::private_options;

use super::leftovers::kill_leftovers;
use super::measurement::Measurement;
use super::measurement_data::MeasurementData;
use super::sampling::UsageSamples;
use super::study_point::StudyPoint;

/// Folder of a study's results, locked against a second study.
#[derive(Debug)]
pub(super) struct ResultsFolder {
    path: PathBuf,
    /// Lock against a second study with the same folder, held until dropped.
    _lock: File,
}

/// Marker file while something runs.
#[derive(Debug, Serialize, Deserialize)]
struct RunningMarker {
    /// Token in the environment of every process that the study has started.
    token: String,
}

const RUNNING_FILE: &str = "running.json";
const MEASUREMENT_FILE: &str = "measurement.json";

impl ResultsFolder {
    /// Opens or creates the folder, and ends what an earlier study has left running.
    ///
    /// # Errors
    /// It cannot be written, or another study is using it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", path.display());
        fs::create_dir_all(path).map_err(wrong)?;
        let lock = File::open(path).map_err(wrong)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("{}: in use by another study; wait for it, or choose another --out", path.display())
        })?;
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.clean_up().map_err(wrong)?;
        Ok(folder)
    }

    /// Path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends what is left of a study that was killed with all its supervisors.
    fn clean_up(&self) -> io::Result<()> {
        let note = fs::read_to_string(self.path.join(RUNNING_FILE)).unwrap_or_default();
        if let Ok(RunningMarker { token }) = serde_json::from_str(&note)
            && !token.is_empty()
        {
            kill_leftovers(&token);
        }
        self.clear_running()
    }

    /// Writes the marker that something runs.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn mark_running(&self, token: &str) -> io::Result<()> {
        let note = serde_json::to_string(&RunningMarker { token: token.to_owned() })?;
        write_atomically(&self.path.join(RUNNING_FILE), note.as_bytes())
    }

    /// Removes the marker.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(super) fn clear_running(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(RUNNING_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Folder of a measurement's files.
    pub(super) fn measurement_path(&self, variant: &str, point: &StudyPoint, repeat: u64) -> PathBuf {
        self.path.join("measurements").join(variant).join(point.name()).join(repeat.to_string())
    }

    /// File of a run, relative to the results folder: all rounds of a load are in one folder, for `weir compare`.
    pub(super) fn run_name(variant: &str, point: &StudyPoint, load: &str, repeat: u64) -> String {
        format!("runs/{variant}/{}/{load}/{repeat}.json", point.name())
    }

    /// Saved measurement, if it has this definition.
    pub(super) fn read_measurement(&self, path: &Path, definition_hash: &str) -> Option<Measurement> {
        let cell: Measurement = serde_json::from_str(&fs::read_to_string(path.join(MEASUREMENT_FILE)).ok()?).ok()?;
        (cell.definition_hash == definition_hash).then_some(cell)
    }

    /// Saves a measurement. `measurement.json` is written last, so that its presence means that all files are complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save_measurement(&self, path: &Path, measured: &MeasurementData) -> io::Result<()> {
        // Invalidates what a measurement of another definition has left.
        let _ = fs::remove_file(path.join(MEASUREMENT_FILE));
        fs::create_dir_all(path)?;
        for (name, run) in &measured.runs {
            self.write(name, run.to_json().as_bytes())?;
        }
        write_atomically(&path.join(UsageSamples::FILE_NAME), measured.samples.csv().as_bytes())?;
        let mut text = serde_json::to_string_pretty(&measured.measurement)?;
        text.push('\n');
        write_atomically(&path.join(MEASUREMENT_FILE), text.as_bytes())
    }

    /// Deletes all measurements, runs and plots.
    ///
    /// # Errors
    /// They cannot be removed.
    pub(super) fn delete_measurements(&self) -> io::Result<()> {
        for name in ["measurements", "runs", "plots"] {
            match fs::remove_dir_all(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a file of the result.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        write_atomically(&path, text)
    }
}

/// Writes a file completely or not at all, even if the process is killed meanwhile.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    private_options().write(true).create(true).truncate(true).open(&part)?.write_all(bytes)?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_measurement_is_reused_unless_its_definition_has_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = ResultsFolder::open(dir.path()).expect("can be written");
        let path = folder.measurement_path("a", &StudyPoint::default(), 1);
        let cell =
            Measurement { definition_hash: "x".into(), variant: "a".into(), repeat: 1, ..Measurement::default() };
        folder
            .save_measurement(&path, &MeasurementData { measurement: cell.clone(), ..MeasurementData::default() })
            .expect("saved");
        assert_eq!(folder.read_measurement(&path, "x"), Some(cell));
        assert_eq!(folder.read_measurement(&path, "y"), None);
        assert_eq!(folder.read_measurement(&folder.measurement_path("b", &StudyPoint::default(), 1), "x"), None);
        assert!(ResultsFolder::open(dir.path()).is_err_and(|why| why.contains("another study")));
    }
}

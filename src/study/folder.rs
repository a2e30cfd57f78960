//! The folder of a study's results: measurements as they are made, and a note of what runs, for when we are killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::cell::Measurement;
use super::conduct::{ENV_MARKER, MeasurementData};
use super::fingerprint::short_hash;
use super::sampling::UsageSamples;
use crate::machine::processes;

/// A study's results.
#[derive(Debug)]
pub(super) struct ResultsFolder {
    path: PathBuf,
    /// Locked as long as we are there, so that no other study writes here.
    _lock: File,
}

/// What runs, while it runs.
#[derive(Debug, Serialize, Deserialize)]
struct RunningMarker {
    /// In the environment of all that the study has started.
    token: String,
}

const RUNNING_FILE: &str = "running.json";
const MEASUREMENT_FILE: &str = "cell.json";

impl ResultsFolder {
    /// Opens the folder, makes it if there is none, and ends what a study before us has left running.
    ///
    /// # Errors
    /// It cannot be written, or another study is at it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("cannot write {}: {error}", path.display());
        fs::create_dir_all(path).map_err(wrong)?;
        let lock = File::open(path).map_err(wrong)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("{}: another study is writing there; wait for it, or take another --out", path.display())
        })?;
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.clean_up().map_err(wrong)?;
        Ok(folder)
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends what is left of a study that was killed with all its guards.
    fn clean_up(&self) -> io::Result<()> {
        let note = fs::read_to_string(self.path.join(RUNNING_FILE)).unwrap_or_default();
        if let Ok(RunningMarker { token }) = serde_json::from_str(&note)
            && !token.is_empty()
        {
            let left = || processes::started_with(ENV_MARKER, &token);
            if !left().is_empty() {
                processes::kill_all(left);
            }
        }
        self.clear_running()
    }

    /// Notes that something runs from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn mark_running(&self, token: &str) -> io::Result<()> {
        let note = serde_json::to_string(&RunningMarker { token: token.to_owned() })?;
        write_atomically(&self.path.join(RUNNING_FILE), note.as_bytes())
    }

    /// Notes that nothing runs any more.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn clear_running(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(RUNNING_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Where the files of a measurement are.
    pub(super) fn measurement_path(&self, variant: &str, point: &[(String, String)], repeat: u64) -> PathBuf {
        self.path.join("cells").join(variant).join(point_name(point)).join(repeat.to_string())
    }

    /// Where the runs of a load in a measurement are, from the results' folder: all rounds in one folder, as `weir compare`
    /// takes them.
    pub(super) fn run_name(variant: &str, point: &[(String, String)], load: &str, repeat: u64) -> String {
        format!("runs/{variant}/{}/{load}/{repeat}.json", point_name(point))
    }

    /// A measurement that was made before, if its definition is still this one.
    pub(super) fn read_measurement(&self, path: &Path, definition: &str) -> Option<Measurement> {
        let cell: Measurement = serde_json::from_str(&fs::read_to_string(path.join(MEASUREMENT_FILE)).ok()?).ok()?;
        (cell.definition == definition).then_some(cell)
    }

    /// Keeps a measurement. Its `cell.json` comes last: who finds it finds all.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn save_measurement(&self, path: &Path, measured: &MeasurementData) -> io::Result<()> {
        // What a measurement of another definition has left there is not of this one.
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

    /// Forgets all measurements.
    ///
    /// # Errors
    /// They cannot be removed.
    pub(super) fn delete_measurements(&self) -> io::Result<()> {
        for name in ["cells", "runs", "plots"] {
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

/// There is the whole file or none, also when we are killed meanwhile.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}

/// A point's name as a folder: `connections=8,workers=2`; `all` if nothing is varied.
pub fn point_name(point: &[(String, String)]) -> String {
    if point.is_empty() {
        return "all".to_owned();
    }
    let simple = |value: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = !value.is_empty() && value.len() <= 40 && value.chars().all(fits);
        if plain { value.to_owned() } else { short_hash(value) }
    };
    point.iter().map(|(name, value)| format!("{name}={}", simple(value))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn points_are_names_of_folders_and_never_lead_out_of_theirs() {
        assert_eq!(point_name(&[]), "all");
        assert_eq!(point_name(&point(&[("connections", "8"), ("size", "1.5")])), "connections=8,size=1.5");
        let odd = point_name(&point(&[("path", "../../etc")]));
        assert!(!odd.contains('/') && odd.starts_with("path="), "{odd}");
        assert_ne!(odd, point_name(&point(&[("path", "../../usr")])));
    }

    #[test]
    fn a_measurement_is_found_again_unless_its_definition_has_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = ResultsFolder::open(dir.path()).expect("can be written");
        let path = folder.measurement_path("a", &[], 1);
        let cell = Measurement { definition: "x".into(), variant: "a".into(), repeat: 1, ..Measurement::default() };
        folder
            .save_measurement(&path, &MeasurementData { measurement: cell.clone(), ..MeasurementData::default() })
            .expect("kept");
        assert_eq!(folder.read_measurement(&path, "x"), Some(cell));
        assert_eq!(folder.read_measurement(&path, "y"), None);
        assert_eq!(folder.read_measurement(&folder.measurement_path("b", &[], 1), "x"), None);
        assert!(ResultsFolder::open(dir.path()).is_err_and(|why| why.contains("another study")));
    }
}

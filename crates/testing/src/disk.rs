//! A small disk that can be filled.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Small disk; it is unmounted on drop.
pub struct Disk(PathBuf);

impl Disk {
    /// A disk of some MiB in place of a folder; none where mounting is not allowed.
    pub fn mount(at: &Path, mib: u64) -> Option<Self> {
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    /// Fills it, up to the last byte.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Frees what filled it. The file is emptied and not only removed: another thread may just start a process, which
    /// has a copy of each descriptor until it executes its program, and a removed file that is open keeps its space.
    pub fn free(&self) {
        File::create(self.ballast()).unwrap();
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

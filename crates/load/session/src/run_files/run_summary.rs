//! Summary of a run: comparison with a saved one, and the page of a job.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_command::Messages;
use weir_history::CompareOptions;
use weir_measure::Run;
use weir_report::comparison::markdown;

/// Comparison of a run with those at `base`, as Markdown. What cannot be compared is a line that says why: the run was
/// made, and its summary is still true.
pub(super) fn comparison_with(base: &Path, run: &Run, messages: &Messages) -> String {
    let sides = vec![base.to_owned(), PathBuf::from("this run")];
    let asked = CompareOptions { sides, ..CompareOptions::default() };
    let compared = asked.compare(vec![None, Some(vec![run.clone()])], &mut |text| messages.note(text));
    match compared {
        Ok(result) => markdown::render(&result.comparison),
        Err(why) => {
            messages.note(&format!("not compared: {why}"));
            format!("- not compared: {}", why.replace('<', "&lt;"))
        }
    }
}

/// Appends a summary to the file that is shown on the page of a job.
pub(super) fn append_to_job_page(path: &OsStr, summary: &str) -> io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    // One write, so that loads side by side do not mix.
    file.write_all(format!("{summary}\n").as_bytes())
}

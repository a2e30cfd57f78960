//! Reports of saved runs: of one, or of several that are compared.

use super::{CompareOptions, RunFilter, RunLibrary};
use weir_measure::Run;
use weir_report::comparison::{SavedRun, Side};
use weir_report::page;
use weir_report::read::ToolResult;

/// Maximum number of runs that are compared.
const MAX_COMPARED_RUNS: usize = 50;

impl RunLibrary {
    /// Report of a run, or the comparison of several, as HTML; `force` compares what does not go together.
    ///
    /// # Errors
    /// One line, if there is no run, one too many, or they do not go together.
    pub fn document(&self, ids: &[i64], force: bool) -> Result<String, String> {
        match ids {
            [] => Err("no run is chosen".to_owned()),
            [id] => Ok(page::render(&page::of_run(&self.run(*id)?))),
            ids if ids.len() > MAX_COMPARED_RUNS => Err(format!("{MAX_COMPARED_RUNS} runs are compared at most")),
            ids => {
                let sides = ids.iter().map(|id| Ok(side(*id, self.run(*id)?)));
                let sides = sides.collect::<Result<Vec<_>, String>>()?;
                let names = sides.iter().map(|side| side.name.clone());
                let shown: Vec<String> = names.chain(force.then(|| "--force".to_owned())).collect();
                let compared = CompareOptions { force, ..CompareOptions::default() }.compare_sides(sides)?;
                let command = ["weir", "compare"].into_iter().map(str::to_owned).chain(shown).collect::<Vec<_>>();
                Ok(compared.html(&command))
            }
        }
    }

    /// Number of the newest run, if it began at this time or later, in seconds since 1970.
    pub fn newest_since(&self, started_unix_s: f64) -> Option<i64> {
        let runs = self.runs(&RunFilter { limit: Some(1), ..RunFilter::default() }).ok()?;
        runs.last().filter(|run| run.started_unix_s >= started_unix_s).map(|run| run.id)
    }
}

fn side(id: i64, run: Run) -> Side {
    let name = format!("#{id}");
    Side { runs: vec![SavedRun { file: name.clone(), result: ToolResult::of_run(run) }], name }
}

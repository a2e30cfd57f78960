//! Reasons not to trust runs, each once for all runs that have it.

use super::{ComparedRun, ComparedSide};

/// Maximum number of files named for the same reason.
const MAX_FILES: usize = 3;

/// Word of reasons that doubt digits alone.
pub(super) const CAUTION: &str = "caution";

/// Runs with the same reason.
struct SharedDoubt<'a> {
    reason: String,
    runs: Vec<(&'a ComparedSide, &'a ComparedRun)>,
}

/// Lines such as `caution: A, B: all 8 runs: too few successes (60)`, or `not trusted: B: b.json: ...`: the word, and the
/// text behind it.
pub(super) fn doubts(sides: &[ComparedSide]) -> Vec<(&'static str, String)> {
    let mut all: Vec<SharedDoubt<'_>> = Vec::new();
    let runs = sides.iter().flat_map(|side| side.runs.iter().map(move |run| (side, run)));
    for (side, run) in runs.filter(|(_, run)| !run.warnings.is_empty()) {
        let reason = match run.few_successes {
            Some(_) => "too few successes".to_owned(),
            None => run.warnings.join(" "),
        };
        match all.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.runs.push((side, run)),
            None => all.push(SharedDoubt { reason, runs: vec![(side, run)] }),
        }
    }
    let line = |doubt: &SharedDoubt<'_>| (doubt.grade(), format!("{}: {}", doubt.whose(sides), doubt.words()));
    all.iter().map(line).collect()
}

impl SharedDoubt<'_> {
    /// Few successes doubt digits; all else the figures.
    fn grade(&self) -> &'static str {
        if self.runs.iter().all(|(_, run)| run.few_successes.is_some()) { CAUTION } else { "not trusted" }
    }

    /// Sides all of whose runs have it, and files of the others.
    fn whose(&self, sides: &[ComparedSide]) -> String {
        let of = |side: &ComparedSide| self.runs.iter().filter(|(own, _)| own.letter == side.letter).count();
        let whole: Vec<&ComparedSide> =
            sides.iter().filter(|side| side.runs.len() == of(side) && of(side) > 1).collect();
        let letters: Vec<&str> = whole.iter().map(|side| side.letter.as_str()).collect();
        let count: usize = whole.iter().map(|side| side.runs.len()).sum();
        let whole = (count > 0).then(|| format!("{}: all {count} runs", letters.join(", ")));
        let part = |side: &ComparedSide| {
            let files = self.runs.iter().filter(|(own, _)| own.letter == side.letter);
            let files: Vec<&str> = files.map(|(_, run)| run.file.as_str()).collect();
            let more = files.len().saturating_sub(MAX_FILES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}: {}{more}", side.letter, files[..files.len().min(MAX_FILES)].join(", "))
        };
        let parts = sides.iter().filter(|side| of(side) > 0 && !letters.contains(&side.letter.as_str())).map(part);
        whole.into_iter().chain(parts).collect::<Vec<_>>().join("; ")
    }

    fn words(&self) -> String {
        let counts = || self.runs.iter().filter_map(|(_, run)| run.few_successes);
        match (counts().min(), counts().max()) {
            (Some(least), Some(most)) if least < most => format!("{} ({least} to {most})", self.reason),
            (Some(least), _) => format!("{} ({least})", self.reason),
            _ => self.reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(letter: &str, runs: &[(&str, Option<u64>)]) -> ComparedSide {
        let run = |(reason, few_successes): &(&str, Option<u64>)| ComparedRun {
            file: format!("{letter}{}.json", few_successes.unwrap_or(0)),
            tool: "weir".into(),
            warnings: if reason.is_empty() { Vec::new() } else { vec![(*reason).to_owned()] },
            few_successes: *few_successes,
        };
        ComparedSide {
            letter: letter.into(),
            name: letter.into(),
            runs: runs.iter().map(run).collect(),
            untrusted: false,
        }
    }

    #[test]
    fn a_reason_of_many_runs_is_a_line() {
        let few = [("few", Some(60)); 4];
        assert_eq!(
            doubts(&[side("A", &few), side("B", &few)]),
            [(CAUTION, "A, B: all 8 runs: too few successes (60)".to_owned())]
        );
        let mixed = [("", None), ("late.", None), ("late.", None), ("few", Some(7))];
        assert_eq!(
            doubts(&[side("A", &few[..2]), side("B", &mixed)]),
            [
                (CAUTION, "A: all 2 runs; B: B7.json: too few successes (7 to 60)".to_owned()),
                ("not trusted", "B: B0.json, B0.json: late.".to_owned())
            ]
        );
        let late = [("late.", None); 6];
        let some = [&late[..5], &[("", None)]].concat();
        assert_eq!(
            doubts(&[side("A", &some)]),
            [("not trusted", "A: A0.json, A0.json, A0.json and 2 more: late.".to_owned())]
        );
        assert!(doubts(&[side("A", &[("", None)])]).is_empty());
    }
}

//! Load that the command line of a run asks for, where its figures differ from it: stages, and a rate of random arrivals.

use weir_base::units;
use weir_measure::Run;

use super::number_format::{rate, truncate};

/// Columns that stages take at most.
const MAX_STAGES_COLUMNS: usize = 40;
/// Fraction from which a rate that came is another one than the rate asked for.
const MIN_RATE_DIFFERENCE: f64 = 0.005;
/// Number of requests below which the length of a run decides its rate.
const MIN_REQUESTS: u64 = 100;

/// Rate or stages in front of what came of them: `400/s asked, 413/s came`.
pub(super) fn offered(run: &Run, offered_per_s: f64) -> String {
    let has_many = run.requests.total >= MIN_REQUESTS;
    let is_another = |asked: &f64| has_many && (offered_per_s / asked - 1.0).abs() >= MIN_RATE_DIFFERENCE;
    let asked = value(run, &["--rate", "-r"]).and_then(|text| units::rate(text).ok());
    match (stages(run), asked.filter(is_another)) {
        (Some(stages), _) => format!("{stages}, {}/s offered", rate(offered_per_s)),
        (None, Some(asked)) => format!("{}/s asked, {}/s came", rate(asked), rate(offered_per_s)),
        (None, None) => format!("{}/s offered", rate(offered_per_s)),
    }
}

/// Stages as they were given: `stages 0-10u/30s,10u/1m`.
pub(super) fn stages(run: &Run) -> Option<String> {
    Some(format!("stages {}", truncate(value(run, &["--stages"])?, MAX_STAGES_COLUMNS)))
}

/// Value of a flag of the command line; none if the load was changed while it ran.
fn value<'a>(run: &'a Run, flags: &[&str]) -> Option<&'a str> {
    let command = run.changes.is_none().then_some(&run.manifest.command)?;
    command.iter().zip(1..).find_map(|(word, next)| {
        if flags.contains(&word.as_str()) {
            return command.get(next).map(String::as_str);
        }
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str]) -> Run {
        let mut run = crate::tests::fixtures::open();
        run.manifest.command = command.iter().map(|word| (*word).to_owned()).collect();
        run
    }

    #[test]
    fn a_rate_is_told_beside_another_that_came_and_stages_as_they_were_given() {
        let command = |flags: &[&str]| run(&[&["weir", "load", "http://h/"], flags].concat());
        assert_eq!(offered(&command(&["-r", "400"]), 413.0), "400/s asked, 413/s came");
        assert_eq!(offered(&command(&["--rate=24000/m"]), 401.0), "401/s offered");
        assert_eq!(offered(&command(&[]), 413.0), "413/s offered");
        let staged = command(&["--stages", "0-200/30s,200/1m"]);
        assert_eq!(offered(&staged, 170.0), "stages 0-200/30s,200/1m, 170/s offered");
        assert_eq!(stages(&command(&["--stages=0-10u/1s"])).as_deref(), Some("stages 0-10u/1s"));
        let many = "1/1s,".repeat(50);
        assert!(stages(&command(&["--stages", &many])).is_some_and(|words| words.chars().count() <= 48));
        assert_eq!(stages(&command(&["--stages"])), None);
    }
}

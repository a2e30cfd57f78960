//! Tests of runs.

use crate::outcome::{Outcome, RequestEnd};
use crate::recorder::Recorder;
use crate::run::{Manifest, Run};
use crate::run_facts::RunFacts;
use crate::series::RunSeries;
use weir_base::Nanos;

#[test]
fn failures_are_named_by_their_status_if_there_is_one() {
    let words = |statuses: &[u16]| {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        for (number, status) in (0..).zip(statuses) {
            recorder.record(&Outcome {
                number,
                ..Outcome::new(RequestEnd::Response(*status), Nanos::ZERO, Nanos::from_millis(10))
            });
        }
        let facts = RunFacts { end: Nanos::SECOND, ..RunFacts::default() };
        Run::of(facts, &recorder.counts, &[], &RunSeries::default(), Manifest::default()).failed_by_kind()
    };
    assert_eq!(words(&[503, 503, 404, 200]), "2 x 503, 1 x 404");
    assert_eq!(words(&[503, 500, 404]), "2 5xx, 1 x 404");
    assert_eq!(words(&[999, 999]), "2 x 999");
    assert_eq!(words(&[500, 600]), "2 5xx and above");
}

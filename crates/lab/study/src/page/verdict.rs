//! Verdict at the top of the HTML report of a study.

use crate::findings::{Findings, PairVerdict, StudyMetric, VariantPair};
use crate::text;
use weir_measure::compare::Finding;
use weir_report::page::{PageVerdict, Tone, VerdictPoint};

/// Number of verdicts by finding, of a variant compared with another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FindingCounts {
    better: usize,
    worse: usize,
    same: usize,
    inconclusive: usize,
}

pub(super) fn of(findings: &Findings<'_>) -> PageVerdict {
    let measured = findings.outcome.measurements.iter().filter(|cell| cell.is_measured()).count();
    let is_partial = findings.definition.quick || findings.outcome.missing > 0;
    let (tone, words) = match measured {
        0 => (Tone::Bad, "Nothing could be measured".to_owned()),
        _ => headline(findings),
    };
    let tone = if is_partial && tone == Tone::Good { Tone::Doubt } else { tone };
    let limitations = text::limitations(findings).into_iter().map(|words| VerdictPoint::new(Tone::Doubt, words));
    let sentences = text::finding_sentences(findings)
        .into_iter()
        .map(|sentence| VerdictPoint::new(sentence.finding.map_or(Tone::Bad, Tone::of), sentence.text));
    PageVerdict {
        tone,
        headline: words,
        sentence: sentence(findings, measured),
        points: limitations.chain(sentences).collect(),
    }
}

fn sentence(findings: &Findings<'_>, measured: usize) -> String {
    let all = findings.outcome.measurements.len();
    let primary: Vec<String> = findings.metrics.iter().filter(|of| of.is_primary).map(StudyMetric::name).collect();
    let failed = match all - measured {
        0 => String::new(),
        n => format!(" {n} of {all} measurements failed."),
    };
    format!("Judged by {}, over {measured} measurements.{failed}", primary.join(" and "))
}

fn headline(findings: &Findings<'_>) -> (Tone, String) {
    let main: Vec<&PairVerdict> =
        findings.verdicts.iter().filter(|it| findings.metrics[it.metric].is_primary).collect();
    let pairs = findings.pairs();
    let counts = |pair: VariantPair| {
        let of_pair = main.iter().filter(|it| it.pair() == pair);
        of_pair.fold(FindingCounts::default(), |counts, it| counts.count(it.verdict.finding))
    };
    match pairs[..] {
        [] => (Tone::Doubt, "There is nothing to compare".to_owned()),
        [pair] => {
            let noun = if main.len() > findings.points.len() { "verdicts" } else { "points" };
            pair_headline(findings.variant(pair.base), findings.variant(pair.other), counts(pair), noun)
        }
        _ => {
            let all = pairs.iter().fold(FindingCounts::default(), |all, pair| all.merge(counts(*pair)));
            let best = best(&pairs, &counts);
            match best.map(|variant| findings.variant(variant)) {
                Some(best) => (Tone::Good, format!("{best} is the best")),
                None => overall_headline(all),
            }
        }
    }
}

/// Headline for a single pair.
fn pair_headline(base: &str, other: &str, counts: FindingCounts, noun: &str) -> (Tone, String) {
    let all = counts.total();
    let FindingCounts { better, worse, same, inconclusive } = counts;
    let at = |n: usize| if n == all { String::new() } else { format!(" at {n} of {all} {noun}") };
    match (better, worse, same, inconclusive) {
        (1.., 0, ..) => (Tone::Good, format!("{other} is better than {base}{}", at(better))),
        (0, 1.., ..) => (Tone::Good, format!("{base} is better than {other}{}", at(worse))),
        (1.., 1.., ..) => {
            (Tone::Doubt, format!("It depends: {other} is better at {better} of {all} {noun}, {base} at {worse}"))
        }
        (0, 0, 1.., 0) => (Tone::Good, format!("{other} and {base} are the same")),
        _ => (Tone::Doubt, "Inconclusive".to_owned()),
    }
}

/// Headline for several pairs without a variant that is better than all others.
fn overall_headline(all: FindingCounts) -> (Tone, String) {
    match all.better + all.worse {
        0 if all.inconclusive == 0 => (Tone::Good, "All variants are the same".to_owned()),
        0 => (Tone::Doubt, "Inconclusive".to_owned()),
        different => (Tone::Plain, format!("{different} of {} comparisons show a difference", all.total())),
    }
}

/// Variant that is better than each other one at every point, if there is one.
fn best(pairs: &[VariantPair], counts: &dyn Fn(VariantPair) -> FindingCounts) -> Option<usize> {
    let mut variants: Vec<usize> = pairs.iter().flat_map(|pair| [pair.base, pair.other]).collect();
    variants.sort_unstable();
    variants.dedup();
    // Many variants are compared with the first only; then no other one can be shown to be the best.
    let wins = |variant: usize, pair: &VariantPair| {
        let of = counts(*pair);
        let won = if pair.other == variant { of.better } else { of.worse };
        won > 0 && won == of.total()
    };
    let is_best = |variant: &usize| {
        let own: Vec<_> = pairs.iter().filter(|pair| pair.base == *variant || pair.other == *variant).collect();
        own.len() + 1 == variants.len() && own.into_iter().all(|pair| wins(*variant, pair))
    };
    variants.iter().copied().find(is_best)
}

impl FindingCounts {
    fn count(mut self, finding: Finding) -> Self {
        match finding {
            Finding::Better => self.better += 1,
            Finding::Worse => self.worse += 1,
            Finding::Same => self.same += 1,
            Finding::Unclear(_) => self.inconclusive += 1,
        }
        self
    }

    fn merge(self, other: Self) -> Self {
        Self {
            better: self.better + other.better,
            worse: self.worse + other.worse,
            same: self.same + other.same,
            inconclusive: self.inconclusive + other.inconclusive,
        }
    }

    fn total(self) -> usize {
        self.better + self.worse + self.same + self.inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts([better, worse, same, inconclusive]: [usize; 4]) -> FindingCounts {
        FindingCounts { better, worse, same, inconclusive }
    }

    #[test]
    fn the_headline_of_a_pair_names_the_winner_first() {
        let words = |of| pair_headline("a", "b", counts(of), "points").1;
        assert_eq!(words([1, 0, 0, 0]), "b is better than a");
        assert_eq!(words([0, 2, 0, 0]), "a is better than b");
        assert_eq!(words([2, 0, 1, 1]), "b is better than a at 2 of 4 points");
        assert_eq!(words([2, 1, 1, 0]), "It depends: b is better at 2 of 4 points, a at 1");
        assert_eq!(words([0, 0, 3, 0]), "b and a are the same");
        assert_eq!(words([0, 0, 3, 1]), "Inconclusive");
    }

    #[test]
    fn the_best_is_better_than_each_other_at_every_point() {
        let pair = |(base, other)| VariantPair { base, other };
        let pairs = [(0, 1), (0, 2), (1, 2)].map(pair);
        let of = |all: [[usize; 4]; 3]| {
            best(&pairs, &|pair| counts(all[pairs.iter().position(|known| *known == pair).expect("a pair")]))
        };
        assert_eq!(of([[2, 0, 0, 0], [0, 0, 2, 0], [0, 2, 0, 0]]), Some(1), "2 is not better than 0, and needs not be");
        assert_eq!(of([[2, 0, 0, 0], [0, 0, 2, 0], [0, 1, 0, 1]]), None);
        assert_eq!(of([[0, 2, 0, 0], [0, 2, 0, 0], [0, 0, 0, 2]]), Some(0));
        let star = [(0, 1), (0, 2)].map(pair);
        assert_eq!(best(&star, &|_| counts([1, 0, 0, 0])), None, "1 was not compared with 2");
        assert_eq!(best(&star, &|_| counts([0, 1, 0, 0])), Some(0));
    }
}

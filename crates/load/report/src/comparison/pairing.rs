//! Pairing of runs that were made in turns: those of a round are compared with each other.

use super::side::Side;

/// Round of each run of each side, if runs were made in turns: sorted by time, each round has one run of each side, in
/// any order.
pub fn match_rounds(sides: &[Side]) -> Option<Vec<Vec<u64>>> {
    let mut runs: Vec<(f64, usize, usize)> = Vec::new();
    for (side, of) in sides.iter().enumerate() {
        for (index, run) in of.runs.iter().enumerate() {
            runs.push((run.result.started_unix_s?, side, index));
        }
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = sides.len();
    if count < 2 || runs.len() < 2 * count || !runs.len().is_multiple_of(count) {
        return None;
    }
    let mut rounds: Vec<Vec<u64>> = sides.iter().map(|side| vec![0; side.runs.len()]).collect();
    for (number, round) in (0_u64..).zip(runs.chunks(count)) {
        let mut seen = vec![false; count];
        for (_, side, index) in round {
            if std::mem::replace(&mut seen[*side], true) {
                return None;
            }
            rounds[*side][*index] = number;
        }
    }
    Some(rounds)
}

/// Note for runs that were not made in turns.
pub(super) fn advice(sides: &[Side]) -> &'static str {
    let known = sides.iter().flat_map(|side| &side.runs).all(|run| run.result.started_unix_s.is_some());
    if known {
        "the runs were not made in turns: a machine that slowed down meanwhile looks like a difference; run A, B, A, B, ..."
    } else {
        "when these runs were made is unknown: if not in turns, a machine that slowed down looks like a difference"
    }
}

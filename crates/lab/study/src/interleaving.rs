//! Order of the measurements.

use super::measurement::MeasurementId;
use weir_base::rng::SeededRng;

/// All measurements, round by round: each combination once per round, in random order. Slow changes of the machine then
/// affect all variants alike: randomized multiple interleaved trials (Abedi and Brecht: "Conducting repeatable
/// experiments in highly variable cloud computing environments", ICPE 2017).
pub(super) fn interleave(variants: usize, points: usize, repeats: u64, seed: u64) -> Vec<MeasurementId> {
    let mut order = Vec::new();
    for repeat in 1..=repeats {
        let mut rng = SeededRng::new(seed, repeat);
        let places =
            (0..variants).flat_map(|variant| (0..points).map(move |point| MeasurementId { repeat, variant, point }));
        let mut round: Vec<MeasurementId> = places.collect();
        // Fisher-Yates shuffle.
        for last in (1..round.len()).rev() {
            round.swap(last, (rng.bits() % (last as u64 + 1)) as usize);
        }
        order.append(&mut round);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_round_has_every_combination_once(
            variants in 1..6_usize, points in 1..6_usize, repeats in 1..5_u64, seed: u64,
        ) {
            let all = interleave(variants, points, repeats, seed);
            for (round, places) in (1..).zip(all.chunks(variants * points)) {
                prop_assert!(places.iter().all(|place| place.repeat == round));
                prop_assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), variants * points);
            }
            prop_assert_eq!(all.len(), variants * points * repeats as usize);
            prop_assert_eq!(interleave(variants, points, repeats, seed), all);
        }
    }

    #[test]
    fn every_variant_is_first_about_as_often() {
        let all = interleave(2, 1, 1000, 7);
        let first = all.chunks(2).filter(|round| round[0].variant == 0).count();
        assert!((400..600).contains(&first), "{first}");
    }
}

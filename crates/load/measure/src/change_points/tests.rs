//! Series that Apache Otava publishes with its points, and properties of any series.

use super::*;
use proptest::prelude::*;

/// Throughputs of TigerBeetle over a year: an outlier, a drop, two rises, a slope. Series and points below are those of
/// Apache Otava's tests (tests/tigerbeetle_test.py, Apache License 2.0).
#[rustfmt::skip]
const TIGERBEETLE: [u32; 365] = [
    26705, 26475, 26641, 26806, 26835, 26911, 26564, 26812, 26874, 26682, 15672, 26745, 26460, 26977, 26851, 23412,
    23547, 23674, 23519, 23670, 23662, 23462, 23750, 23717, 23524, 23588, 23687, 23793, 23937, 23715, 23570, 23730,
    23690, 23699, 23670, 23860, 23988, 23652, 23681, 23798, 23728, 23604, 23523, 23412, 23685, 23773, 23771, 23718,
    23409, 23739, 23674, 23597, 23682, 23680, 23711, 23660, 23990, 23938, 23742, 23703, 23536, 24363, 24414, 24483,
    24509, 24944, 24235, 24560, 24236, 24667, 24730, 28346, 28437, 28436, 28057, 28217, 28456, 28427, 28398, 28250,
    28331, 28222, 28726, 28578, 28345, 28274, 28514, 28590, 28449, 28305, 28411, 28788, 28404, 28821, 28580, 27483,
    26805, 27487, 27124, 26898, 27295, 26951, 27312, 27660, 27154, 27050, 26989, 27193, 27503, 27326, 27375, 27513,
    27057, 27421, 27574, 27609, 27123, 27824, 27644, 27394, 27836, 27949, 27702, 27457, 27272, 28207, 27802, 27516,
    27586, 28005, 27768, 28543, 28237, 27915, 28437, 28342, 27733, 28296, 28524, 28687, 28258, 28611, 29360, 28590,
    29641, 28965, 29474, 29256, 28611, 28205, 28539, 27962, 28398, 28509, 28240, 28592, 28102, 28461, 28578, 28669,
    28507, 28535, 28226, 28536, 28561, 28087, 27953, 28398, 28007, 28518, 28337, 28242, 28607, 28545, 28514, 28377,
    28010, 28412, 28633, 28576, 28195, 28637, 28724, 28466, 28287, 28719, 28425, 28860, 28842, 28604, 28327, 28216,
    28946, 28918, 29287, 28725, 29148, 29541, 29137, 29628, 29087, 28612, 29154, 29108, 28884, 29234, 28695, 28969,
    28809, 28695, 28634, 28916, 29852, 29389, 29757, 29531, 29363, 29251, 29552, 29561, 29046, 29795, 29022, 29395,
    28921, 29739, 29257, 29455, 29376, 29528, 28909, 29492, 28984, 29621, 29026, 29457, 29102, 29114, 28924, 29162,
    29259, 29554, 29616, 29211, 29367, 29460, 28836, 29645, 29586, 28848, 29324, 28969, 29150, 29243, 29081, 29312,
    28923, 29272, 29117, 29072, 29529, 29737, 29652, 29612, 29856, 29012, 30402, 29969, 29309, 29439, 29285, 29421,
    29023, 28772, 29692, 29416, 29267, 29542, 29904, 30045, 29739, 29945, 29141, 29163, 29765, 29197, 29441, 28910,
    29504, 29614, 29643, 29506, 29420, 29672, 29432, 29784, 29888, 29309, 29247, 29816, 29254, 29813, 29451, 29382,
    29618, 28558, 29845, 29499, 29283, 29184, 29246, 28790, 29952, 29145, 29415, 30437, 29227, 29605, 29859, 29156,
    29807, 29406, 29734, 29861, 29140, 29983, 29832, 29919, 29896, 29991, 29266, 29001, 29459, 29548, 29310, 29042,
    29303, 29894, 29091, 29018, 29537, 29614, 29180, 29736, 29500, 29218, 29581, 28906, 28542, 29306, 28987, 29878,
    28865, 30272, 29707, 29662, 29815, 30492, 29347, 30096, 29054, 30238, 28813, 31895, 28915,
];

fn indexes(values: &[f64], max_p_value: f64, min_effect: f64, window: usize) -> Vec<usize> {
    let settings = ChangeSettings { max_p_value, min_effect };
    find(values, &settings, window).iter().map(|point| point.index).collect()
}

#[test]
fn published_series_have_their_published_points() {
    let series = TIGERBEETLE.map(f64::from);
    let tigerbeetle = |max_p_value: f64, min_effect: f64| indexes(&series, max_p_value, min_effect, 30);
    for max_p_value in [0.01, 0.05] {
        assert_eq!(tigerbeetle(max_p_value, 0.05), [15, 71]);
    }
    assert_eq!(tigerbeetle(0.2, 0.05), [10, 11, 15, 71]);
    // Otava has 260 as well: it does not judge the point before a removed one again.
    assert_eq!(tigerbeetle(0.001, 0.0), [15, 61, 71, 95, 117, 131, 142, 148, 192, 212]);
    assert_eq!(tigerbeetle(0.0001, 0.0), [71, 95, 117, 131, 142, 148, 192, 212]);
    assert_eq!(tigerbeetle(0.00001, 0.0), [71, 95, 131, 192, 212]);
    let halved = [
        1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49, 0.51,
        0.50, 0.49,
    ];
    assert_eq!(indexes(&halved, 0.0001, 0.0, 10), [10]);
    let early = [1.02, 0.95, 0.99, 1.00, 1.12, 0.90, 0.50, 0.51, 0.48, 0.48, 0.55];
    assert_eq!(indexes(&early, 0.001, 0.0, WINDOW), [6]);
    let slight = [2.02, 2.03, 2.01, 2.04, 1.82, 1.85, 1.79, 1.81, 1.80, 1.76, 1.78];
    assert_eq!(indexes(&slight, 0.001, 0.0, WINDOW), [4]);
    assert_eq!(indexes(&slight, 0.001, 0.2, WINDOW), [0; 0]);
    let from_zero = [0.0, 0.0, 0.0, 1.00, 1.12, 0.90, 0.50, 0.51, 0.48, 0.48, 0.55];
    let found = find(&from_zero, &ChangeSettings::default(), WINDOW);
    assert_eq!((found.len(), found[0].index, found[0].effect()), (2, 3, f64::INFINITY));
}

#[test]
fn the_divergence_is_that_of_its_definition() {
    let values = [0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1, 148.8, 150.0];
    let distances = Distances::of(&values);
    let mut best = (0.0, 0);
    for split in 1..values.len() {
        for until in split + 1..=values.len() {
            let naive = naive_divergence(&values[..split], &values[split..until]);
            assert!((distances.divergence(0, split, until) - naive).abs() < 1e-9, "{split} {until}");
            best = if naive > best.0 { (naive, split) } else { best };
        }
    }
    assert_eq!(distances.candidate(0, values.len()).1, best.1);
    assert_eq!(split_window(&values, 0.01), [5, 8]);
}

/// Matteson and James (2014), equations 5 and 6.
fn naive_divergence(x: &[f64], y: &[f64]) -> f64 {
    let (n, m) = (x.len() as f64, y.len() as f64);
    let pairs = |a: &[f64], b: &[f64]| a.iter().map(|a| b.iter().map(|b| (a - b).abs()).sum::<f64>()).sum::<f64>();
    let mean_within =
        |part: &[f64], count: f64| if count > 1.0 { pairs(part, part) / (count * (count - 1.0)) } else { 0.0 };
    let energy = 2.0 / (m * n) * pairs(x, y) - mean_within(x, n) - mean_within(y, m);
    m * n / (m + n) * energy
}

proptest! {
    /// Noise of 5% about levels that differ by 30% and more; each lasts ten results and more.
    #[test]
    fn clear_changes_are_found_where_they_are(
        levels in prop::collection::vec((10_usize..60, 0_usize..6), 1..6), noise in prop::collection::vec(-0.05..0.05_f64, 300)
    ) {
        let mut values: Vec<f64> = Vec::new();
        let mut expected = Vec::new();
        for (count, level) in levels {
            let level = 1.3_f64.powi(level as i32);
            if values.last().is_some_and(|last: &f64| (last / level - 1.0).abs() > 0.15) {
                expected.push(values.len());
            }
            let from = values.len();
            values.extend((0..count).map(|i| level * (1.0 + noise[(from + i) % noise.len()])));
        }
        let found = change_points(&values, &ChangeSettings { min_effect: 0.1, ..ChangeSettings::default() });
        let indexes: Vec<usize> = found.iter().map(|point| point.index).collect();
        prop_assert_eq!(&indexes, &expected);
        for point in found {
            prop_assert!(point.p_value < 0.001 && point.effect().abs() > 0.1);
        }
    }

    #[test]
    fn any_series_has_points_within_it_in_order_and_the_scale_does_not_matter(
        values in prop::collection::vec(0.0..1e6_f64, 0..120)
    ) {
        let found = change_points(&values, &ChangeSettings::default());
        prop_assert!(found.windows(2).all(|pair| pair[0].index < pair[1].index));
        prop_assert!(found.iter().all(|point| (1..values.len()).contains(&point.index)));
        let doubled: Vec<f64> = values.iter().map(|value| value * 2.0).collect();
        let indexes = |found: &[ChangePoint]| found.iter().map(|point| point.index).collect::<Vec<_>>();
        prop_assert_eq!(indexes(&change_points(&doubled, &ChangeSettings::default())), indexes(&found));
    }
}

#[test]
fn constant_and_short_series_have_none() {
    for values in [vec![], vec![1.0], vec![1.0, 2.0], vec![5.0; 100]] {
        assert_eq!(change_points(&values, &ChangeSettings::default()), []);
    }
}

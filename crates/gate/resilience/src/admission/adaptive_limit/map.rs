//! The curve of service times over concurrency, and its knee.
//!
//! Constants: "scenarios" are those of `weir simulate`, as in `tuning.rs`.

/// Concurrencies with a bucket each, in calls; above, eight buckets share an octave (9% each).
const EXACT_BUCKETS: usize = 16;
/// Number of buckets: up to 2^21 calls in flight.
const BUCKETS: usize = EXACT_BUCKETS + 17 * 8;
/// Maximum weight of a bucket, in samples: later samples count more than earlier ones. Scenarios.
const MAX_BUCKET_SAMPLES: f64 = 256.0;
/// Samples at the lowest concurrencies whose mean is the unloaded service time. Scenarios.
const NO_LOAD_SAMPLES: f64 = 48.0;
/// Weight, in samples, below which a bucket is left out of the fit: less than half a sample is left of it.
const MIN_BUCKET_SAMPLES: f64 = 0.5;
/// Ratio of two candidates for the knee: the search is 3% fine.
const KNEE_SEARCH_FACTOR: f64 = 1.03;
/// Evidence for a new knee: decrease of the squared residuals, in variances of a sample, while the limit is used. Far
/// more than chance: 20 is more than four standard deviations. Scenarios.
const NEW_KNEE_VARIANCES: f64 = 20.0;
/// Evidence, in variances, for another place of a known knee. Scenarios.
const MOVED_KNEE_VARIANCES: f64 = 4.0;
/// Factor of [`NEW_KNEE_VARIANCES`] while slots are free: over a long time chance finds a knee, too. Scenarios.
const UNPRESSED_VARIANCES_FACTOR: f64 = 4.0;
/// Evidence, in variances, to keep a known knee. Scenarios.
const KEPT_KNEE_VARIANCES: f64 = 4.0;

/// Smallest standard deviation of a service time, as a fraction of it: constant times have a measurement error, too.
/// Scenarios.
const MEASUREMENT_ERROR_FRACTION: f64 = 0.02;
/// Weight of a bucket, in samples, from which new samples are compared with it. Scenarios.
const MIN_SURPRISE_SAMPLES: f64 = 30.0;
/// Factor per sample of the sum of deviations: a memory of about 33 samples. Scenarios.
const SURPRISE_DECAY_FACTOR: f64 = 0.97;
/// Sum of deviations, in standard deviations of a sample, from which the service counts as changed. Large, since each
/// of many gateways sees few calls (`many-gates`). Scenarios.
const MAX_SURPRISE_DEVIATIONS: f64 = 50.0;
/// Factor of the weight of all earlier samples after a change. Scenarios.
const SURPRISE_WEIGHT_FACTOR: f64 = 0.05;

/// Difference of the logarithms below which two knees may be the same one, measured twice: 28%. Scenarios.
const NEAR_KNEE_LOG_RATIO: f64 = 0.25;
/// Weight of the newer one of two such knees. Scenarios.
const KNEE_SMOOTHING_FRACTION: f64 = 0.08;

/// Bucket: means of the samples at about the same concurrency.
#[derive(Clone, Copy, Debug, Default)]
struct CurvePoint {
    /// In samples.
    weight: f64,
    in_flight: f64,
    mean_ns: f64,
    /// Mean of the squares, in ns².
    mean_square: f64,
}

/// Knee of the curve: concurrency from which more calls in flight take longer instead of increasing throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// Calls in flight.
    pub(super) in_flight: f64,
}

impl Knee {
    /// This knee moved towards a newer one: a part of the way if that is near, else all of it.
    pub(super) fn towards(self, other: Self) -> Self {
        let near = (other.in_flight / self.in_flight).ln().abs() < NEAR_KNEE_LOG_RATIO;
        Self {
            in_flight: if near {
                self.in_flight + KNEE_SMOOTHING_FRACTION * (other.in_flight - self.in_flight)
            } else {
                other.in_flight
            },
        }
    }
}

/// Service times by concurrency.
#[derive(Clone, Debug)]
pub(super) struct LatencyCurve {
    buckets: [CurvePoint; BUCKETS],
    /// Decaying sum of the last samples' deviations from earlier ones at their concurrency, in standard deviations.
    surprise: f64,
}

impl Default for LatencyCurve {
    fn default() -> Self {
        Self { buckets: [CurvePoint::default(); BUCKETS], surprise: 0.0 }
    }
}

fn bucket_index(in_flight: f64) -> usize {
    let in_flight = in_flight.max(0.0);
    if in_flight < EXACT_BUCKETS as f64 {
        return in_flight as usize;
    }
    let octaves = (in_flight / EXACT_BUCKETS as f64).log2();
    (EXACT_BUCKETS + (octaves * 8.0) as usize).min(BUCKETS - 1)
}

impl LatencyCurve {
    /// Adds a sample: calls in flight at its start, including itself, and service time in ns.
    pub(super) fn add(&mut self, in_flight: f64, time_ns: f64) {
        let bucket = &mut self.buckets[bucket_index(in_flight)];
        if bucket.weight >= MIN_SURPRISE_SAMPLES {
            let variance = (bucket.mean_square - bucket.mean_ns * bucket.mean_ns)
                .max((MEASUREMENT_ERROR_FRACTION * bucket.mean_ns).powi(2));
            self.surprise = SURPRISE_DECAY_FACTOR * self.surprise + (time_ns - bucket.mean_ns) / variance.sqrt();
        }
        if self.surprise.abs() > MAX_SURPRISE_DEVIATIONS {
            self.surprise = 0.0;
            for bucket in &mut self.buckets {
                bucket.weight *= SURPRISE_WEIGHT_FACTOR;
            }
        }
        let bucket = &mut self.buckets[bucket_index(in_flight)];
        bucket.weight = bucket.weight.min(MAX_BUCKET_SAMPLES - 1.0) + 1.0;
        let weight = 1.0 / bucket.weight;
        bucket.in_flight += weight * (in_flight - bucket.in_flight);
        bucket.mean_ns += weight * (time_ns - bucket.mean_ns);
        bucket.mean_square += weight * (time_ns * time_ns - bucket.mean_square);
    }

    /// Multiplies the weight of samples above `limit` by `above`, and of the others by `below`.
    pub(super) fn forget(&mut self, limit: f64, above: f64, below: f64) {
        for bucket in &mut self.buckets {
            bucket.weight *= if bucket.in_flight > limit { above } else { below };
        }
    }

    /// Weight of all samples.
    pub(super) fn weight(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.weight).sum()
    }

    /// Weight of the samples up to this concurrency.
    pub(super) fn weight_up_to(&self, in_flight: f64) -> f64 {
        self.buckets.iter().filter(|bucket| bucket.in_flight <= in_flight).map(|bucket| bucket.weight).sum()
    }

    /// Mean concurrency of all samples.
    pub(super) fn mean_in_flight(&self) -> f64 {
        let sum: f64 = self.buckets.iter().map(|bucket| bucket.weight * bucket.in_flight).sum();
        sum / self.weight().max(f64::MIN_POSITIVE)
    }

    /// Unloaded service time in ns: mean at the lowest concurrencies; `None` with too few samples.
    pub(super) fn no_load_ns(&self) -> Option<f64> {
        let (mut weight, mut sum) = (0.0, 0.0);
        for bucket in &self.buckets {
            weight += bucket.weight;
            sum += bucket.weight * bucket.mean_ns;
            if weight >= NO_LOAD_SAMPLES {
                return Some(sum / weight);
            }
        }
        None
    }

    /// Knee of `time = no_load * (1 + steepness * max(0, in_flight / knee - 1))` that fits best, by least squares;
    /// `None` if it explains no more than chance does, or little more while the limit is not used (`pressed`). Times
    /// count up to `max_factor` times the unloaded one: beyond that they only show that the concurrency is far too
    /// high.
    pub(super) fn knee(&self, max_factor: f64, steepness: f64, before: Option<Knee>, pressed: bool) -> Option<Knee> {
        let curve = CurveFit::new(self, max_factor, steepness)?;
        let without_knee = curve.residual(f64::INFINITY);
        let (mut least, mut at) = (f64::INFINITY, curve.min_in_flight());
        let mut candidate = at;
        while candidate < curve.max_in_flight() {
            let residual = curve.residual(candidate);
            if residual <= least {
                (least, at) = (residual, candidate);
            }
            candidate *= KNEE_SEARCH_FACTOR;
        }
        if let Some(before) = before.filter(|before| before.in_flight < curve.max_in_flight()) {
            let residual = curve.residual(before.in_flight);
            if residual - least < MOVED_KNEE_VARIANCES * curve.variance {
                (least, at) = (residual, before.in_flight);
            }
        }
        let evidence = match before {
            Some(_) => KEPT_KNEE_VARIANCES,
            None if pressed => NEW_KNEE_VARIANCES,
            None => NEW_KNEE_VARIANCES * UNPRESSED_VARIANCES_FACTOR,
        };
        (without_knee - least > evidence * curve.variance).then_some(Knee { in_flight: at })
    }
}

/// Points of a curve for the fit.
struct CurveFit {
    points: [CurvePoint; BUCKETS],
    count: usize,
    max_factor: f64,
    steepness: f64,
    /// Variance of a single sample, in ns².
    variance: f64,
}

impl CurveFit {
    fn new(curve: &LatencyCurve, max_factor: f64, steepness: f64) -> Option<Self> {
        let no_load_ns = curve.no_load_ns()?;
        let cap_ns = max_factor * no_load_ns;
        let mut points = [CurvePoint::default(); BUCKETS];
        let mut count = 0;
        let (mut spread, mut weight) = (0.0, 0.0);
        for bucket in curve.buckets.iter().filter(|bucket| bucket.weight > MIN_BUCKET_SAMPLES) {
            if bucket.mean_ns <= cap_ns {
                spread += bucket.weight * (bucket.mean_square - bucket.mean_ns * bucket.mean_ns).max(0.0);
                weight += bucket.weight;
            }
            points[count] = CurvePoint { mean_ns: bucket.mean_ns.min(cap_ns), ..*bucket };
            count += 1;
        }
        let variance =
            if weight > 0.0 { spread / weight } else { 0.0 }.max((MEASUREMENT_ERROR_FRACTION * no_load_ns).powi(2));
        Some(Self { points, count, max_factor, steepness, variance })
    }

    fn points(&self) -> &[CurvePoint] {
        &self.points[..self.count]
    }

    fn min_in_flight(&self) -> f64 {
        self.points().first().map_or(1.0, |point| point.in_flight.max(1.0))
    }

    fn max_in_flight(&self) -> f64 {
        self.points().last().map_or(0.0, |point| point.in_flight)
    }

    /// Sum of the squared residuals with this knee and the unloaded time that fits it best.
    fn residual(&self, knee: f64) -> f64 {
        let (mut tm, mut mm, mut tt) = (0.0, 0.0, 0.0);
        for point in self.points() {
            let m = (1.0 + self.steepness * (point.in_flight / knee - 1.0).max(0.0)).min(self.max_factor);
            tm += point.weight * point.mean_ns * m;
            mm += point.weight * m * m;
            tt += point.weight * point.mean_ns * point.mean_ns;
        }
        if mm > 0.0 { tt - tm * tm / mm } else { 0.0 }
    }
}

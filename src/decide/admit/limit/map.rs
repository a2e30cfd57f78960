//! How long things take, by how many are in when they begin; and where that bends.

/// Below this each number has a bucket of its own, above it eight share an octave.
const EXACT_BUCKETS: usize = 16;
const BUCKETS: usize = EXACT_BUCKETS + 17 * 8;
/// What a bucket knows weighs no more than so many samples: what comes is worth more than what was.
const MAX_BUCKET_SAMPLES: f64 = 256.0;
/// It takes so many samples to know how long things take.
const NO_LOAD_SAMPLES: f64 = 48.0;
/// A bucket that weighs less says nothing.
const MIN_BUCKET_SAMPLES: f64 = 0.5;
/// From one place that may be the knee to the next.
const KNEE_SEARCH_FACTOR: f64 = 1.03;
/// A bend has to explain so many variances, and another place than before so many more than that.
const NEW_KNEE_VARIANCES: f64 = 20.0;
const MOVED_KNEE_VARIANCES: f64 = 4.0;
/// And a new one so many times as many while there are places left: chance looks for long.
const UNPRESSED_VARIANCES_FACTOR: f64 = 4.0;
const KEPT_KNEE_VARIANCES: f64 = 4.0;

/// Times that are always the same are measured with some error, too.
const MEASUREMENT_ERROR_FRACTION: f64 = 0.02;
/// With so many samples something is known of those beside as many. If about the last 1 / (1 - SHORT) are further off it
/// than chance allows, the service has changed, and what is known is worth no more than this part.
const MIN_SURPRISE_SAMPLES: f64 = 30.0;
const SURPRISE_DECAY_FACTOR: f64 = 0.97;
const MAX_SURPRISE_DEVIATIONS: f64 = 50.0;
const SURPRISE_WEIGHT_FACTOR: f64 = 0.05;

/// Knees that differ by less (as logarithms) may be one and the same, of which so much of the newer is believed.
const NEAR_KNEE_LOG_RATIO: f64 = 0.25;
const KNEE_SMOOTHING_FRACTION: f64 = 0.08;

/// Means of those that began beside about as many.
#[derive(Clone, Copy, Debug, Default)]
struct CurvePoint {
    weight: f64,
    in_flight: f64,
    /// In ns, and its square.
    mean_ns: f64,
    mean_square: f64,
}

/// Where more in flight begin to take longer instead of getting more done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// So many are in.
    pub(super) in_flight: f64,
}

impl Knee {
    /// A part of the way to another one that is near; all of it, if it is not.
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

/// Times by how many were in.
#[derive(Clone, Debug)]
pub(super) struct LatencyCurve {
    buckets: [CurvePoint; BUCKETS],
    /// By how much the last ones took longer than what is known of their like, in deviations of one, all together.
    surprise: f64,
}

impl Default for LatencyCurve {
    fn default() -> Self {
        Self { buckets: [CurvePoint::default(); BUCKETS], surprise: 0.0 }
    }
}

fn bucket_index(beside: f64) -> usize {
    let beside = beside.max(0.0);
    if beside < EXACT_BUCKETS as f64 {
        return beside as usize;
    }
    let octaves = (beside / EXACT_BUCKETS as f64).log2();
    (EXACT_BUCKETS + (octaves * 8.0) as usize).min(BUCKETS - 1)
}

impl LatencyCurve {
    /// One that began beside so many, itself included, took so many ns.
    pub(super) fn add(&mut self, beside: f64, time: f64) {
        let bucket = &mut self.buckets[bucket_index(beside)];
        if bucket.weight >= MIN_SURPRISE_SAMPLES {
            let variance = (bucket.mean_square - bucket.mean_ns * bucket.mean_ns)
                .max((MEASUREMENT_ERROR_FRACTION * bucket.mean_ns).powi(2));
            self.surprise = SURPRISE_DECAY_FACTOR * self.surprise + (time - bucket.mean_ns) / variance.sqrt();
        }
        if self.surprise.abs() > MAX_SURPRISE_DEVIATIONS {
            self.surprise = 0.0;
            for bucket in &mut self.buckets {
                bucket.weight *= SURPRISE_WEIGHT_FACTOR;
            }
        }
        let bucket = &mut self.buckets[bucket_index(beside)];
        bucket.weight = bucket.weight.min(MAX_BUCKET_SAMPLES - 1.0) + 1.0;
        let part = 1.0 / bucket.weight;
        bucket.in_flight += part * (beside - bucket.in_flight);
        bucket.mean_ns += part * (time - bucket.mean_ns);
        bucket.mean_square += part * (time * time - bucket.mean_square);
    }

    /// Keeps a part of what is known of more than `limit`, and of less.
    pub(super) fn forget(&mut self, limit: f64, above: f64, below: f64) {
        for bucket in &mut self.buckets {
            bucket.weight *= if bucket.in_flight > limit { above } else { below };
        }
    }

    /// How many samples stand for all that is known.
    pub(super) fn weight(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.weight).sum()
    }

    /// How many samples stand for what is known up to there.
    pub(super) fn weight_up_to(&self, beside: f64) -> f64 {
        self.buckets.iter().filter(|bucket| bucket.in_flight <= beside).map(|bucket| bucket.weight).sum()
    }

    /// The mean of what is known, by how many were in.
    pub(super) fn mean_in_flight(&self) -> f64 {
        let sum: f64 = self.buckets.iter().map(|bucket| bucket.weight * bucket.in_flight).sum();
        sum / self.weight().max(f64::MIN_POSITIVE)
    }

    /// How long things take beside the fewest, in ns; none while too little is known.
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

    /// The bend of `time = unhindered * (1 + steep * max(0, beside / knee - 1))` that fits best, by least squares; none if
    /// it explains no more than chance would, or little more while there is no hurry. Times count up to `clamp` times the
    /// base: beyond that they only say "far too many".
    pub(super) fn knee(&self, clamp: f64, steep: f64, before: Option<Knee>, hurry: bool) -> Option<Knee> {
        let curve = CurveFit::new(self, clamp, steep)?;
        let straight = curve.residual(f64::INFINITY);
        let (mut rest, mut at) = (f64::INFINITY, curve.min_in_flight());
        let mut candidate = at;
        while candidate < curve.max_in_flight() {
            let its = curve.residual(candidate);
            if its <= rest {
                (rest, at) = (its, candidate);
            }
            candidate *= KNEE_SEARCH_FACTOR;
        }
        if let Some(before) = before.filter(|before| before.in_flight < curve.max_in_flight()) {
            let its = curve.residual(before.in_flight);
            if its - rest < MOVED_KNEE_VARIANCES * curve.variance {
                (rest, at) = (its, before.in_flight);
            }
        }
        let sure = match before {
            Some(_) => KEPT_KNEE_VARIANCES,
            None if hurry => NEW_KNEE_VARIANCES,
            None => NEW_KNEE_VARIANCES * UNPRESSED_VARIANCES_FACTOR,
        };
        (straight - rest > sure * curve.variance).then_some(Knee { in_flight: at })
    }
}

/// What a map knows, as points.
struct CurveFit {
    points: [CurvePoint; BUCKETS],
    count: usize,
    max_factor: f64,
    steepness: f64,
    /// The variance of a single time.
    variance: f64,
}

impl CurveFit {
    fn new(map: &LatencyCurve, clamp: f64, steep: f64) -> Option<Self> {
        let base = map.no_load_ns()?;
        let most = clamp * base;
        let mut points = [CurvePoint::default(); BUCKETS];
        let mut count = 0;
        let (mut spread, mut weight) = (0.0, 0.0);
        for bucket in map.buckets.iter().filter(|bucket| bucket.weight > MIN_BUCKET_SAMPLES) {
            if bucket.mean_ns <= most {
                spread += bucket.weight * (bucket.mean_square - bucket.mean_ns * bucket.mean_ns).max(0.0);
                weight += bucket.weight;
            }
            points[count] = CurvePoint { mean_ns: bucket.mean_ns.min(most), ..*bucket };
            count += 1;
        }
        let noise = if weight > 0.0 { spread / weight } else { 0.0 }.max((MEASUREMENT_ERROR_FRACTION * base).powi(2));
        Some(Self { points, count, max_factor: clamp, steepness: steep, variance: noise })
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

    /// The squares that remain if the knee is there and the unhindered time is the best for it.
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

//! How long things take, by how many are in when they begin; and where that bends.

/// Below this each number has a bucket of its own, above it eight share an octave.
const EXACT: usize = 16;
const BUCKETS: usize = EXACT + 17 * 8;
/// What a bucket knows weighs no more than so many samples: what comes is worth more than what was.
const MOST: f64 = 256.0;
/// It takes so many samples to know how long things take.
const BASE: f64 = 48.0;
/// A bucket that weighs less says nothing.
const TRACE: f64 = 0.5;
/// From one place that may be the knee to the next.
const FINENESS: f64 = 1.03;
/// A bend has to explain so many variances, and another place than before so many more than that.
const SURE: f64 = 20.0;
const SURER: f64 = 4.0;
/// And a new one so many times as many while there are places left: chance looks for long.
const CALM: f64 = 4.0;
const STILL: f64 = 4.0;

/// Times that are always the same are measured with some error, too.
const ERROR: f64 = 0.02;
/// With so many samples something is known of those beside as many. If about the last 1 / (1 - SHORT) are further off it
/// than chance allows, the service has changed, and what is known is worth no more than this part.
const SOME: f64 = 30.0;
const SHORT: f64 = 0.97;
const SURPRISED: f64 = 50.0;
const DOUBT: f64 = 0.05;

/// Knees that differ by less (as logarithms) may be one and the same, of which so much of the newer is believed.
const NEAR: f64 = 0.25;
const INERTIA: f64 = 0.08;

/// Means of those that began beside about as many.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    weight: f64,
    beside: f64,
    /// In ns, and its square.
    time: f64,
    square: f64,
}

/// Where more in flight begin to take longer instead of getting more done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// So many are in.
    pub(super) at: f64,
}

impl Knee {
    /// A part of the way to another one that is near; all of it, if it is not.
    pub(super) fn towards(self, other: Self) -> Self {
        let near = (other.at / self.at).ln().abs() < NEAR;
        Self { at: if near { self.at + INERTIA * (other.at - self.at) } else { other.at } }
    }
}

/// Times by how many were in.
#[derive(Clone, Debug)]
pub(super) struct Map {
    buckets: [Bucket; BUCKETS],
    /// By how much the last ones took longer than what is known of their like, in deviations of one, all together.
    surprise: f64,
}

impl Default for Map {
    fn default() -> Self {
        Self { buckets: [Bucket::default(); BUCKETS], surprise: 0.0 }
    }
}

fn place(beside: f64) -> usize {
    let beside = beside.max(0.0);
    if beside < EXACT as f64 {
        return beside as usize;
    }
    let octaves = (beside / EXACT as f64).log2();
    (EXACT + (octaves * 8.0) as usize).min(BUCKETS - 1)
}

impl Map {
    /// One that began beside so many, itself included, took so many ns.
    pub(super) fn add(&mut self, beside: f64, time: f64) {
        let bucket = &mut self.buckets[place(beside)];
        if bucket.weight >= SOME {
            let variance = (bucket.square - bucket.time * bucket.time).max((ERROR * bucket.time).powi(2));
            self.surprise = SHORT * self.surprise + (time - bucket.time) / variance.sqrt();
        }
        if self.surprise.abs() > SURPRISED {
            self.surprise = 0.0;
            for bucket in &mut self.buckets {
                bucket.weight *= DOUBT;
            }
        }
        let bucket = &mut self.buckets[place(beside)];
        bucket.weight = bucket.weight.min(MOST - 1.0) + 1.0;
        let part = 1.0 / bucket.weight;
        bucket.beside += part * (beside - bucket.beside);
        bucket.time += part * (time - bucket.time);
        bucket.square += part * (time * time - bucket.square);
    }

    /// Keeps a part of what is known of more than `limit`, and of less.
    pub(super) fn forget(&mut self, limit: f64, above: f64, below: f64) {
        for bucket in &mut self.buckets {
            bucket.weight *= if bucket.beside > limit { above } else { below };
        }
    }

    /// How many samples stand for all that is known.
    pub(super) fn weight(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.weight).sum()
    }

    /// How many samples stand for what is known up to there.
    pub(super) fn weight_to(&self, beside: f64) -> f64 {
        self.buckets.iter().filter(|bucket| bucket.beside <= beside).map(|bucket| bucket.weight).sum()
    }

    /// The mean of what is known, by how many were in.
    pub(super) fn middle(&self) -> f64 {
        let sum: f64 = self.buckets.iter().map(|bucket| bucket.weight * bucket.beside).sum();
        sum / self.weight().max(f64::MIN_POSITIVE)
    }

    /// How long things take beside the fewest, in ns; none while too little is known.
    pub(super) fn base(&self) -> Option<f64> {
        let (mut weight, mut sum) = (0.0, 0.0);
        for bucket in &self.buckets {
            weight += bucket.weight;
            sum += bucket.weight * bucket.time;
            if weight >= BASE {
                return Some(sum / weight);
            }
        }
        None
    }

    /// The bend of `time = unhindered * (1 + steep * max(0, beside / knee - 1))` that fits best, by least squares; none if
    /// it explains no more than chance would, or little more while there is no hurry. Times count up to `clamp` times the
    /// base: beyond that they only say "far too many".
    pub(super) fn knee(&self, clamp: f64, steep: f64, before: Option<Knee>, hurry: bool) -> Option<Knee> {
        let curve = Curve::new(self, clamp, steep)?;
        let straight = curve.rest(f64::INFINITY);
        let (mut rest, mut at) = (f64::INFINITY, curve.first());
        let mut candidate = at;
        while candidate < curve.last() {
            let its = curve.rest(candidate);
            if its <= rest {
                (rest, at) = (its, candidate);
            }
            candidate *= FINENESS;
        }
        if let Some(before) = before.filter(|before| before.at < curve.last()) {
            let its = curve.rest(before.at);
            if its - rest < SURER * curve.noise {
                (rest, at) = (its, before.at);
            }
        }
        let sure = match before {
            Some(_) => STILL,
            None if hurry => SURE,
            None => SURE * CALM,
        };
        (straight - rest > sure * curve.noise).then_some(Knee { at })
    }
}

/// What a map knows, as points.
struct Curve {
    points: [Bucket; BUCKETS],
    count: usize,
    clamp: f64,
    steep: f64,
    /// The variance of a single time.
    noise: f64,
}

impl Curve {
    fn new(map: &Map, clamp: f64, steep: f64) -> Option<Self> {
        let base = map.base()?;
        let most = clamp * base;
        let mut points = [Bucket::default(); BUCKETS];
        let mut count = 0;
        let (mut spread, mut weight) = (0.0, 0.0);
        for bucket in map.buckets.iter().filter(|bucket| bucket.weight > TRACE) {
            if bucket.time <= most {
                spread += bucket.weight * (bucket.square - bucket.time * bucket.time).max(0.0);
                weight += bucket.weight;
            }
            points[count] = Bucket { time: bucket.time.min(most), ..*bucket };
            count += 1;
        }
        let noise = if weight > 0.0 { spread / weight } else { 0.0 }.max((ERROR * base).powi(2));
        Some(Self { points, count, clamp, steep, noise })
    }

    fn points(&self) -> &[Bucket] {
        &self.points[..self.count]
    }

    fn first(&self) -> f64 {
        self.points().first().map_or(1.0, |point| point.beside.max(1.0))
    }

    fn last(&self) -> f64 {
        self.points().last().map_or(0.0, |point| point.beside)
    }

    /// The squares that remain if the knee is there and the unhindered time is the best for it.
    fn rest(&self, knee: f64) -> f64 {
        let (mut tm, mut mm, mut tt) = (0.0, 0.0, 0.0);
        for point in self.points() {
            let m = (1.0 + self.steep * (point.beside / knee - 1.0).max(0.0)).min(self.clamp);
            tm += point.weight * point.time * m;
            mm += point.weight * m * m;
            tt += point.weight * point.time * point.time;
        }
        if mm > 0.0 { tt - tm * tm / mm } else { 0.0 }
    }
}

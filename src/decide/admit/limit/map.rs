//! How long things take, by how many are in when they begin; and where it bends.

/// Below this each number has a bucket of its own, above it eight share an octave.
const EXACT: usize = 16;
const BUCKETS: usize = EXACT + 17 * 8;
/// What a bucket knows weighs no more than so many samples, so that it forgets what was.
const MOST: f64 = 64.0;
/// It takes so many samples to know how long things take.
const BASE: f64 = 48.0;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    weight: f64,
    /// Means.
    beside: f64,
    time: f64,
    square: f64,
}

/// Where more in flight begin to take longer instead of getting more done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knee {
    /// So many are in.
    pub(super) at: f64,
    /// They take so long, in ns.
    pub(super) time: f64,
    /// By how many variances it explains the times better than no knee.
    pub(super) sure: f64,
}

/// Means of times by how many were in.
#[derive(Clone, Debug)]
pub(super) struct Map {
    buckets: [Bucket; BUCKETS],
}

impl Default for Map {
    fn default() -> Self {
        Self { buckets: [Bucket::default(); BUCKETS] }
    }
}

fn place(beside: f64) -> usize {
    let number = beside.max(0.0);
    if number < EXACT as f64 {
        return number as usize;
    }
    let octaves = (number / EXACT as f64).log2();
    (EXACT + (octaves * 8.0) as usize).min(BUCKETS - 1)
}

impl Map {
    pub(super) fn add(&mut self, beside: f64, time: f64) {
        let bucket = &mut self.buckets[place(beside)];
        bucket.weight = bucket.weight.min(MOST - 1.0) + 1.0;
        let part = 1.0 / bucket.weight;
        bucket.beside += part * (beside - bucket.beside);
        bucket.time += part * (time - bucket.time);
        bucket.square += part * (time * time - bucket.square);
    }

    /// What is known counts less, above `limit` by `above`.
    pub(super) fn decay(&mut self, above: f64, below: f64, limit: f64) {
        for bucket in &mut self.buckets {
            bucket.weight *= if bucket.beside > limit { above } else { below };
        }
    }

    /// The weight of what is known up to there.
    pub(super) fn weight_to(&self, beside: f64) -> f64 {
        self.buckets.iter().filter(|bucket| bucket.beside <= beside).map(|bucket| bucket.weight).sum()
    }

    /// How long things take beside the fewest; none while too little is known.
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

    pub(super) fn knee(&self, clamp: f64, before: Option<f64>) -> Option<Knee> {
        let most = clamp * self.base()?;
        let mut known = [Bucket::default(); BUCKETS];
        let mut count = 0;
        let (mut noise, mut noisy) = (0.0, 0.0);
        for bucket in self.buckets.iter().filter(|bucket| bucket.weight > 0.5) {
            if bucket.time < most {
                noise += bucket.weight * (bucket.square - bucket.time * bucket.time).max(0.0);
                noisy += bucket.weight;
            }
            known[count] = Bucket { time: bucket.time.min(most), ..*bucket };
            count += 1;
        }
        let known = &known[..count];
        let weight: f64 = known.iter().map(|one| one.weight).sum();
        let noise = noise / noisy;
        // The square of what remains, and the time below the knee, if it is there.
        let fit = |at: f64| {
            let (mut dm, mut mm, mut dd) = (0.0, 0.0, 0.0);
            for one in known {
                let m = (one.beside / at).clamp(1.0, clamp);
                dm += one.weight * one.time * m;
                mm += one.weight * m * m;
                dd += one.weight * one.time * one.time;
            }
            (dd - dm * dm / mm, dm / mm)
        };
        let mean = known.iter().map(|one| one.weight * one.time).sum::<f64>() / weight;
        let noise = noise.max((0.02 * mean).powi(2));
        let (flat, _) = fit(f64::INFINITY);
        let mut best: Option<(f64, f64, f64)> = None;
        let last = known.last().map_or(0.0, |one| one.beside);
        let mut at = known.first().map_or(1.0, |one| one.beside.max(1.0));
        while at < last {
            let (rest, time) = fit(at);
            if best.is_none_or(|(least, ..)| rest <= least) {
                best = Some((rest, at, time));
            }
            at *= 1.03;
        }
        let (mut rest, mut at, mut time) = best?;
        if let Some(before) = before.filter(|before| *before < last) {
            let (old, its) = fit(before);
            if (old - rest) / noise < 4.0 {
                (rest, at, time) = (old, before, its);
            }
        }
        let sure = (flat - rest) / noise;
        (sure > 10.0).then_some(Knee { at, time, sure })
    }
}

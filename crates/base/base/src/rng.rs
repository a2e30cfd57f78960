//! Seeded random numbers that are the same in every version.
//!
//! A run can be repeated from its seed years later and on another machine, so the generator must not change with a
//! library: SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) is
//! implemented here. It is counter-based: the k-th number needs no earlier one.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Stream of random numbers; one per purpose, selected by `salt`.
#[derive(Clone, Copy, Debug)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// Stream `salt` of `seed`.
    pub fn new(seed: u64, salt: u64) -> Self {
        Self { state: mix(seed ^ mix(salt.wrapping_mul(GAMMA))) }
    }

    /// Next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Next number, uniform in (0, 1]: never 0, so its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        to_unit(self.bits())
    }

    /// Next number, exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// Next number, normal with mean 0 and variance 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Next number, gamma with this shape (> 0) and scale 1: mean and variance are the shape (Marsaglia and Tsang, "A
    /// Simple Method for Generating Gamma Variables", 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // The method needs a shape of 1; one below it is a fraction of the next one.
            let fraction = self.unit().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * fraction;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Next number, uniform in 0, 1, ..., `n` - 1 (to 1 in 2^32 / n); 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.bits() >> 32) * n as u64) >> 32) as usize
    }

    /// The `k`-th number of the stream, uniform in (0, 1], without the earlier ones.
    pub fn unit_at(&self, k: u64) -> f64 {
        to_unit(mix(self.state.wrapping_add(GAMMA.wrapping_mul(k.wrapping_add(1)))))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn to_unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Random integers, by remainder, for the simulations in tests of all crates.
#[derive(Debug)]
pub struct TestRng(pub SeededRng);

impl TestRng {
    /// In [0, n).
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.bits() % n
    }

    /// True once in n.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::SeededRng;

    #[test]
    fn a_draw_by_number_is_the_draw_in_turn() {
        let mut turn = SeededRng::new(7, 1);
        let by_number = turn;
        for k in 0..1000 {
            assert_eq!(turn.unit().to_bits(), by_number.unit_at(k).to_bits());
        }
    }

    /// The first five numbers of the reference implementation for the seed 1234567.
    #[test]
    fn the_stream_is_that_of_the_reference() {
        let mut rng = SeededRng { state: 1_234_567 };
        let first: Vec<u64> = (0..5).map(|_| rng.bits()).collect();
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, reference);
    }

    #[test]
    fn the_mean_of_exponential_draws_is_one() {
        let mut rng = SeededRng::new(1, 2);
        let mean = (0..100_000).map(|_| rng.exponential()).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }
}

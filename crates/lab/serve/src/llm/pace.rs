//! Times of a language model that a test service plays: prefill by the tokens of the prompt, decoding token by token,
//! slower the more requests run at once.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_workload::delay::Delay;

/// Times of a language model.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmPace {
    /// Time of a prefill beside its tokens.
    pub prefill: Delay,
    /// Time of a prefill per token of the prompt.
    pub prefill_per_token: Nanos,
    /// Time per token of the response behind the first, of a request alone.
    pub decode: Nanos,
    /// Slowdown of decoding by each further running request, as a fraction.
    pub batch_effect: f64,
    /// Maximum deviation of a token's time, as a fraction, 0 to 1; uniform.
    pub jitter: f64,
    /// Fraction of tokens behind a stall, 0 to 1.
    pub stall: f64,
    /// Length of a stall.
    pub stall_time: Delay,
}

impl LlmPace {
    /// Time of the prefill of request `k`: until its first token.
    pub fn prefill_time(&self, rng: &SeededRng, k: u64, input_tokens: u64) -> Nanos {
        self.prefill.at(rng, k) + Nanos(self.prefill_per_token.0.saturating_mul(input_tokens))
    }

    /// Time of a token behind the first, its index from 1, while `running` requests run, this one included. `rng` is
    /// the request's own stream.
    pub fn token_time(&self, rng: &SeededRng, index: u64, running: u64) -> Nanos {
        let batch = 1.0 + self.batch_effect * running.saturating_sub(1) as f64;
        // Four draws each: deviation, stall, and two of the stall's length.
        let deviation = 1.0 + self.jitter * (2.0 * rng.unit_at(index.wrapping_mul(4)) - 1.0);
        let time = Nanos::from_secs_f64(self.decode.as_secs_f64() * batch * deviation).min(Delay::MAX);
        if rng.unit_at(index.wrapping_mul(4).wrapping_add(1)) > self.stall {
            return time;
        }
        time + self.stall_time.at(rng, index.wrapping_mul(2).wrapping_add(1))
    }
}

impl Default for LlmPace {
    fn default() -> Self {
        Self {
            prefill: Delay::Constant(Nanos::from_millis(20)),
            prefill_per_token: Nanos(50_000),
            decode: Nanos::from_millis(10),
            batch_effect: 0.02,
            jitter: 0.1,
            stall: 0.0,
            stall_time: Delay::Constant(Nanos::SECOND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pace() -> LlmPace {
        LlmPace { batch_effect: 0.1, jitter: 0.0, ..LlmPace::default() }
    }

    #[test]
    fn times_without_randomness_are_exact() {
        let rng = SeededRng::new(1, 2);
        assert_eq!(pace().prefill_time(&rng, 0, 1000), Nanos::from_millis(70));
        assert_eq!(pace().token_time(&rng, 1, 1), Nanos::from_millis(10));
        assert_eq!(pace().token_time(&rng, 1, 11), Nanos::from_millis(20));
        let stalls = LlmPace { stall: 1.0, ..pace() };
        assert_eq!(stalls.token_time(&rng, 1, 1), Nanos::from_millis(1010));
    }

    proptest! {
        #[test]
        fn a_token_is_within_the_jitter(seed: u64, index: u64, running in 1..100_u64, jitter in 0.0..=1.0_f64) {
            let rng = SeededRng::new(seed, 1);
            let exact = pace().token_time(&rng, index, running).0 as f64;
            let time = LlmPace { jitter, ..pace() }.token_time(&rng, index, running).0 as f64;
            prop_assert!((time - exact).abs() <= exact * jitter + 1.0);
        }

        #[test]
        fn stalls_have_their_fraction(seed: u64) {
            let rng = SeededRng::new(seed, 1);
            let stalls = LlmPace { stall: 0.2, ..pace() };
            let stalled = (0..2000).filter(|index| stalls.token_time(&rng, *index, 1) > Nanos::SECOND).count();
            prop_assert!((250..550).contains(&stalled), "{stalled} of 2000");
        }
    }
}

//! Random choices for a request: a function of the seed, the request's number and the time.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_workload::delay::Delay;
use weir_workload::mix::{Behaviour, Mix};
use weir_workload::phases::{Phases, ServicePhase};

/// Seeded random numbers of a service, and the distributions that they draw from.
#[derive(Clone, Debug)]
pub struct WorkRng {
    delay: Delay,
    slow: Delay,
    mix: Mix,
    phases: Phases,
    delay_rng: SeededRng,
    slow_rng: SeededRng,
    mix_rng: SeededRng,
}

/// Behaviour and service time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDecision {
    /// Kind of response, if any.
    pub behaviour: Behaviour,
    /// Time until the response; 0 for a reset.
    pub service_time: Nanos,
}

impl WorkRng {
    /// Choices with this seed: delays of responses and of slow ones, and the mix of behaviours in phase `mix`.
    pub fn new(delay: Delay, slow: Delay, mix: Mix, phases: Phases, seed: u64) -> Self {
        let [delay_rng, slow_rng, mix_rng] = [11, 12, 13].map(|salt| SeededRng::new(seed, salt));
        Self { delay, slow, mix, phases, delay_rng, slow_rng, mix_rng }
    }

    /// Decision on request `k`, which arrives at `now`.
    pub fn at(&self, k: u64, now: Nanos) -> WorkDecision {
        let phase = self.phase(now);
        let behaviour = match phase {
            ServicePhase::Mix => self.mix.at(&self.mix_rng, k),
            ServicePhase::Healthy | ServicePhase::Slow => Behaviour::Good,
            ServicePhase::Failing => Behaviour::Error,
            ServicePhase::Limited => Behaviour::Limited,
            ServicePhase::Dead => Behaviour::Reset,
            ServicePhase::Hung => Behaviour::Hang,
        };
        let service_time = match behaviour {
            Behaviour::Reset => Nanos::ZERO,
            Behaviour::Slow => self.slow(k),
            _ if phase == ServicePhase::Slow => self.slow(k),
            _ => self.delay(k),
        };
        WorkDecision { behaviour, service_time }
    }

    /// Delay of request `k`, unless it is slow.
    pub fn delay(&self, k: u64) -> Nanos {
        self.delay.at(&self.delay_rng, k)
    }

    fn slow(&self, k: u64) -> Nanos {
        self.slow.at(&self.slow_rng, k)
    }

    /// Phase at `now`.
    pub fn phase(&self, now: Nanos) -> ServicePhase {
        self.phases.at(now).phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(phases: &str, seed: u64) -> WorkRng {
        let (delay, slow) = (Delay::read("100ms..600ms").expect("valid"), Delay::read("10s").expect("valid"));
        WorkRng::new(delay, slow, Mix::default(), Phases::read(phases).expect("valid"), seed)
    }

    #[test]
    fn defaults_match_the_reference_upstream() {
        let rng = rng("mix", 0);
        let mut counts = [0_u32; 7];
        for k in 0..110_000 {
            let decision = rng.at(k, Nanos::ZERO);
            counts[decision.behaviour as usize] += 1;
            let ms = decision.service_time.as_millis_f64();
            assert!(if decision.behaviour == Behaviour::Slow { ms == 10_000.0 } else { (100.0..=600.0).contains(&ms) });
        }
        let expected = [80_000, 10_000, 10_000, 0, 10_000, 0, 0];
        assert!(counts.iter().zip(expected).all(|(n, of)| n.abs_diff(of) < 400), "{counts:?}");
    }

    #[test]
    fn a_phase_applies_to_all_its_requests() {
        let text = "healthy 1s, slow 1s, failing 1s, limited 1s, down 1s, hung 1s";
        let rng = rng(text, 0);
        let all = [
            (Behaviour::Good, 100..=600),
            (Behaviour::Good, 10_000..=10_000),
            (Behaviour::Error, 100..=600),
            (Behaviour::Limited, 100..=600),
            (Behaviour::Reset, 0..=0),
            (Behaviour::Hang, 0..=600),
        ];
        for (second, (behaviour, takes)) in all.into_iter().enumerate() {
            for k in 0..50 {
                let decision = rng.at(k, Nanos::from_secs(second as u64));
                assert_eq!(decision.behaviour, behaviour);
                assert!(
                    takes.contains(&(decision.service_time.0 / 1_000_000)),
                    "{behaviour:?}: {}",
                    decision.service_time
                );
            }
        }
    }

    #[test]
    fn behaviour_and_delay_are_independent() {
        let rng = rng("mix", 3);
        let mean = |behaviour| {
            let all = (0..100_000).map(|k| rng.at(k, Nanos::ZERO)).filter(|decision| decision.behaviour == behaviour);
            let all: Vec<f64> = all.map(|decision| decision.service_time.as_millis_f64()).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        for behaviour in [Behaviour::Good, Behaviour::Garbage, Behaviour::Error] {
            assert!((mean(behaviour) - 350.0).abs() < 6.0, "{behaviour:?}");
        }
    }
}

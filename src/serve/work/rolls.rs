//! What the dice make of a request: a function of the seed, the request's number and the time.

use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::dice::Dice;
use crate::decide::mix::{Behaviour, Mix};
use crate::decide::phases::{Phases, ServicePhase};

/// The dice of a service, and what they choose from.
#[derive(Clone, Debug)]
pub struct WorkDice {
    delay: Delay,
    slow: Delay,
    mix: Mix,
    phases: Phases,
    delay_dice: Dice,
    slow_dice: Dice,
    mix_dice: Dice,
}

/// What is to become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDecision {
    /// How it is answered, if at all.
    pub behaviour: Behaviour,
    /// How long that takes; a reset comes at once.
    pub service_time: Nanos,
}

impl WorkDice {
    /// Dice from a seed: `delay` before most answers, `slow` before slow ones, shares as in `mix` while the phase
    /// leaves it to them.
    pub fn new(delay: Delay, slow: Delay, mix: Mix, phases: Phases, seed: u64) -> Self {
        let [delay_dice, slow_dice, mix_dice] = [11, 12, 13].map(|salt| Dice::new(seed, salt));
        Self { delay, slow, mix, phases, delay_dice, slow_dice, mix_dice }
    }

    /// What becomes of request `k`, which arrives at `now`.
    pub fn at(&self, k: u64, now: Nanos) -> WorkDecision {
        let phase = self.phase(now);
        let behaviour = match phase {
            ServicePhase::Mix => self.mix.at(&self.mix_dice, k),
            ServicePhase::Healthy | ServicePhase::Slow => Behaviour::Good,
            ServicePhase::Failing => Behaviour::Error,
            ServicePhase::Limited => Behaviour::Limited,
            ServicePhase::Dead => Behaviour::Reset,
            ServicePhase::Hung => Behaviour::Hang,
        };
        let takes = match behaviour {
            Behaviour::Reset => Nanos::ZERO,
            Behaviour::Slow => self.slow(k),
            _ if phase == ServicePhase::Slow => self.slow(k),
            _ => self.delay(k),
        };
        WorkDecision { behaviour, service_time: takes }
    }

    /// The usual delay of request `k`.
    pub fn delay(&self, k: u64) -> Nanos {
        self.delay.at(&self.delay_dice, k)
    }

    fn slow(&self, k: u64) -> Nanos {
        self.slow.at(&self.slow_dice, k)
    }

    /// What the service is like at `now`.
    pub fn phase(&self, now: Nanos) -> ServicePhase {
        self.phases.at(now).phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rolls(phases: &str, seed: u64) -> WorkDice {
        let (delay, slow) = (Delay::read("100ms..600ms").expect("valid"), Delay::read("10s").expect("valid"));
        WorkDice::new(delay, slow, Mix::default(), Phases::read(phases).expect("valid"), seed)
    }

    #[test]
    fn the_default_is_the_upstream_of_the_mission() {
        let rolls = rolls("mix", 0);
        let mut counts = [0_u32; 7];
        for k in 0..110_000 {
            let roll = rolls.at(k, Nanos::ZERO);
            counts[roll.behaviour as usize] += 1;
            let ms = roll.service_time.as_millis_f64();
            assert!(if roll.behaviour == Behaviour::Slow { ms == 10_000.0 } else { (100.0..=600.0).contains(&ms) });
        }
        let expected = [80_000, 10_000, 10_000, 0, 10_000, 0, 0];
        assert!(counts.iter().zip(expected).all(|(n, of)| n.abs_diff(of) < 400), "{counts:?}");
    }

    #[test]
    fn a_phase_speaks_for_all_its_requests() {
        let text = "healthy 1s, slow 1s, failing 1s, limited 1s, dead 1s, hung 1s";
        let rolls = rolls(text, 0);
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
                let roll = rolls.at(k, Nanos::from_secs(second as u64));
                assert_eq!(roll.behaviour, behaviour);
                assert!(takes.contains(&(roll.service_time.0 / 1_000_000)), "{behaviour:?}: {}", roll.service_time);
            }
        }
    }

    #[test]
    fn what_becomes_of_a_request_tells_nothing_of_how_long_it_takes() {
        let rolls = rolls("mix", 3);
        let mean = |behaviour| {
            let all = (0..100_000).map(|k| rolls.at(k, Nanos::ZERO)).filter(|roll| roll.behaviour == behaviour);
            let all: Vec<f64> = all.map(|roll| roll.service_time.as_millis_f64()).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        for behaviour in [Behaviour::Good, Behaviour::Garbage, Behaviour::Error] {
            assert!((mean(behaviour) - 350.0).abs() < 6.0, "{behaviour:?}");
        }
    }
}

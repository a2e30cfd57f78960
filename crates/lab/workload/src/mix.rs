//! Mix of behaviours of a test service: fractions of good responses and of each kind of failure.

use weir_base::rng::SeededRng;

/// Behaviour of a test service towards one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// 200 with a valid body.
    Good,
    /// 200 with a body that is not JSON.
    Garbage,
    /// 500.
    Error,
    /// 429.
    Limited,
    /// 500 after a long delay.
    Slow,
    /// Connection reset.
    Reset,
    /// Never a response.
    Hang,
}

impl Behaviour {
    /// All behaviours, in the order of `Behaviour as usize`.
    pub const ALL: [Self; 7] =
        [Self::Good, Self::Garbage, Self::Error, Self::Limited, Self::Slow, Self::Reset, Self::Hang];

    /// Name on the command line and in counts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Garbage => "garbage",
            Self::Error => "error",
            Self::Limited => "limited",
            Self::Slow => "slow",
            Self::Reset => "reset",
            Self::Hang => "hang",
        }
    }
}

/// Weighted choice among behaviours; that of request `k` is a function of the random stream and `k` alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Running sums of the weights, in the order of [`Behaviour::ALL`]; the last is above 0.
    sums: [f64; 7],
}

/// Of 11 requests 8 good, 1 garbage, 1 error, 1 slow.
impl Default for Mix {
    fn default() -> Self {
        Self::from_weights([8.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    }
}

impl Mix {
    /// Good responses only.
    pub fn good() -> Self {
        Self::from_weights([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    /// A mix with these weights, finite and >= 0, one of them above 0.
    fn from_weights(weights: [f64; 7]) -> Self {
        let mut sum = 0.0;
        Self {
            sums: weights.map(|weight| {
                sum += weight;
                sum
            }),
        }
    }

    /// Behaviour of request `k`.
    pub fn at(&self, rng: &SeededRng, k: u64) -> Behaviour {
        // A draw is above 0, so the first sum that reaches it belongs to a weight above 0.
        let level = rng.unit_at(k) * self.sums[6];
        Behaviour::ALL[self.sums.partition_point(|sum| *sum < level).min(6)]
    }

    /// Fraction of a behaviour, in [0, 1].
    pub fn fraction(&self, behaviour: Behaviour) -> f64 {
        let index = behaviour as usize;
        let below = if index == 0 { 0.0 } else { self.sums[index - 1] };
        (self.sums[index] - below) / self.sums[6]
    }

    /// Parses weights, `good=8,garbage=1,error=1,slow=1`, or percentages of all requests, `error=10%,reset=0.5%`; the
    /// rest of 100% is good.
    ///
    /// # Errors
    /// Invalid notation, with what to write instead.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut weights: [Option<f64>; 7] = [None; 7];
        let mut percentages = 0;
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        for part in &parts {
            let (name, number) =
                part.split_once('=').ok_or_else(|| format!("invalid weight '{part}'; write {SYNTAX_EXAMPLES}"))?;
            let index =
                Behaviour::ALL.iter().position(|b| b.name() == name.trim()).ok_or_else(|| unknown_behaviour(name))?;
            let number = number.trim();
            let plain = number.strip_suffix('%');
            percentages += usize::from(plain.is_some());
            let weight: f64 = plain.unwrap_or(number).trim_end().parse().unwrap_or(f64::NAN);
            // The maximum keeps sums exact enough, and finite.
            if !(0.0..=1e9).contains(&weight) {
                return Err(format!("invalid weight '{part}'; write a number from 0 to 1e9, or a percentage"));
            }
            if weights[index].replace(weight).is_some() {
                return Err(format!("'{}' is there twice in '{text}'", name.trim()));
            }
        }
        if percentages == parts.len() {
            fill_good(&mut weights, text)?;
        } else if percentages > 0 {
            return Err(format!("'{text}' has weights and percentages; write all of one kind"));
        }
        let weights = weights.map(|weight| weight.unwrap_or(0.0));
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err(format!("all shares in '{text}' are 0; write {SYNTAX_EXAMPLES}"));
        }
        Ok(Self::from_weights(weights))
    }
}

const SYNTAX_EXAMPLES: &str = "weights (good=8,error=1) or percentages (error=10%)";

fn unknown_behaviour(name: &str) -> String {
    let names = Behaviour::ALL.map(Behaviour::name).join(", ");
    format!("unknown behaviour '{}'; choose from {names}", name.trim())
}

fn fill_good(weights: &mut [Option<f64>; 7], text: &str) -> Result<(), String> {
    let sum: f64 = weights.iter().flatten().sum();
    // The tolerance is for rounding: three times 33.3% is 99.9.
    let whole = (sum - 100.0).abs() < 1e-6;
    let good = &mut weights[Behaviour::Good as usize];
    match good {
        _ if whole => {}
        None if sum < 100.0 => *good = Some(100.0 - sum),
        _ => return Err(format!("the percentages in '{text}' add up to {sum}; leave good out, or make them 100")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(mix: &Mix) -> [f64; 7] {
        Behaviour::ALL.map(|behaviour| mix.fraction(behaviour))
    }

    #[test]
    fn the_default_is_8_good_of_11() {
        let shares = shares(&Mix::default());
        assert!((shares[0] - 8.0 / 11.0).abs() < 1e-12);
        assert_eq!(Mix::read("good=8, garbage=1, error=1, slow=1"), Ok(Mix::default()));
        assert_eq!(Behaviour::ALL.map(|behaviour| behaviour as usize), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_rest_of_the_percentages_is_good() {
        let mix = Mix::read("error=10%,reset=0.5 %").expect("valid");
        assert!((mix.fraction(Behaviour::Good) - 0.895).abs() < 1e-12, "{mix:?}");
        let mix = Mix::read("good=33.3%,error=33.3%,hang=33.4%").expect("valid");
        assert!((mix.fraction(Behaviour::Good) - 0.333).abs() < 1e-9, "{mix:?}");
        let mix = Mix::read("error=100%").expect("valid");
        assert_eq!(mix.fraction(Behaviour::Error), 1.0);
    }

    #[test]
    fn an_invalid_mix_is_reported_with_what_to_write() {
        for (text, named) in [
            ("", "invalid weight ''"),
            ("good", "invalid weight 'good'"),
            ("good=1,", "invalid weight ''"),
            ("god=1", "unknown behaviour 'god'; choose from good, garbage, error, limited, slow, reset, hang"),
            ("Good=1", "unknown behaviour 'Good'"),
            ("good=x", "invalid weight 'good=x'"),
            ("good=-1", "invalid weight 'good=-1'"),
            ("good=NaN", "invalid weight 'good=NaN'"),
            ("good=inf", "invalid weight 'good=inf'"),
            ("good=", "invalid weight 'good='"),
            ("good=0,error=0", "are 0"),
            ("good=1,good=2", "'good' is there twice"),
            ("good=1,error=10%", "all of one kind"),
            ("error=60%,hang=50%", "add up to 110"),
            ("good=60%,hang=30%", "add up to 90"),
        ] {
            let why = Mix::read(text).expect_err(text);
            assert!(why.contains(named) && !why.contains('\n'), "{text}: {why}");
        }
    }

    #[test]
    fn behaviours_have_their_fractions() {
        let (mix, rng) = (Mix::read("good=5,limited=2,reset=2,hang=1").expect("valid"), SeededRng::new(11, 4));
        let mut counts = [0_u32; 7];
        for k in 0..100_000 {
            counts[mix.at(&rng, k) as usize] += 1;
        }
        let expected = [50_000, 0, 0, 20_000, 0, 20_000, 10_000];
        assert!(counts.iter().zip(expected).all(|(n, of)| n.abs_diff(of) <= of / 50), "{counts:?}");
        assert_eq!((counts[1], counts[2], counts[4]), (0, 0, 0), "a share of 0 never comes");
    }

    proptest! {
        /// Naive model: subtract the weights one after the other.
        #[test]
        fn the_choice_is_that_of_a_naive_walk(weights in prop::array::uniform7(0..5_u32), seed: u64, k: u64) {
            let weights = weights.map(f64::from);
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let text: Vec<String> =
                Behaviour::ALL.iter().zip(weights).map(|(b, weight)| format!("{}={weight}", b.name())).collect();
            let mix = Mix::read(&text.join(",")).expect("valid");
            let rng = SeededRng::new(seed, 4);
            let mut left = rng.unit_at(k) * total;
            let naive = Behaviour::ALL.into_iter().zip(weights).find(|(_, weight)| {
                left -= weight;
                left <= 0.0
            });
            prop_assert_eq!(Some(mix.at(&rng, k)), naive.map(|(b, _)| b));
            for (share, weight) in shares(&mix).into_iter().zip(weights) {
                prop_assert!((share - weight / total).abs() < 1e-9);
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "((good|error|hang|x)?=?[0-9.e%-]{0,5},?){0,4}") {
            if let Ok(mix) = Mix::read(&text) {
                let sum: f64 = shares(&mix).iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-9, "{:?}", mix);
            }
        }
    }
}

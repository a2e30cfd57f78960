//! Schedule of a test service's behaviour: phases such as healthy, slow and down, repeated.

use weir_base::nanos::Nanos;
use weir_base::units;

/// Behaviour of a test service during a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServicePhase {
    /// Behaviours by the configured mix.
    Mix,
    /// Good responses.
    Healthy,
    /// Good responses after the delay of slow ones.
    Slow,
    /// Status 500.
    Failing,
    /// Status 429.
    Limited,
    /// Connections reset.
    Dead,
    /// No responses.
    Hung,
}

impl ServicePhase {
    /// All phases.
    pub const ALL: [Self; 7] =
        [Self::Mix, Self::Healthy, Self::Slow, Self::Failing, Self::Limited, Self::Dead, Self::Hung];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mix => "mix",
            Self::Healthy => "healthy",
            Self::Slow => "slow",
            Self::Failing => "failing",
            Self::Limited => "limited",
            Self::Dead => "down",
            Self::Hung => "hung",
        }
    }
}

/// Phase of a service, with its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseInterval {
    /// Phase.
    pub phase: ServicePhase,
    /// Start.
    pub since: Nanos,
    /// Start of the next phase; [`Nanos::NEVER`] if there is none.
    pub until: Nanos,
}

/// Sequence of phases. It repeats, unless the last phase is unlimited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Each phase with its end in the first round, ascending; never empty.
    ends: Vec<(ServicePhase, Nanos)>,
}

/// The mix of behaviours, unlimited.
impl Default for Phases {
    fn default() -> Self {
        Self { ends: vec![(ServicePhase::Mix, Nanos::NEVER)] }
    }
}

impl Phases {
    /// Phase at `now`.
    pub fn at(&self, now: Nanos) -> PhaseInterval {
        let round = self.ends.last().map_or(Nanos::NEVER, |(_, end)| *end);
        let start = if round == Nanos::NEVER { Nanos::ZERO } else { now - Nanos(now.0 % round.0) };
        let within = now - start;
        let index = self.ends.partition_point(|(_, end)| *end <= within).min(self.ends.len() - 1);
        let since = if index == 0 { Nanos::ZERO } else { self.ends[index - 1].1 };
        let (phase, end) = self.ends[index];
        PhaseInterval { phase, since: start + since, until: start + end }
    }

    /// Reads `healthy 30s, slow 10s, down 5s`; a last phase without a length lasts for ever.
    ///
    /// # Errors
    /// Which phase is wrong and what is expected, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut ends = Vec::new();
        let mut end = Nanos::ZERO;
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        for (index, part) in parts.iter().enumerate() {
            let mut tokens = part.split_whitespace();
            let name = tokens.next().ok_or_else(|| format!("empty phase in '{text}'; write e.g. {PHASES_EXAMPLE}"))?;
            let phase =
                ServicePhase::ALL.into_iter().find(|phase| phase.name() == name).ok_or_else(|| unknown_phase(name))?;
            match (tokens.next(), tokens.next()) {
                (None, _) if index + 1 < parts.len() => {
                    return Err(format!("invalid phase '{part}': no duration; only the last phase may have none"));
                }
                (None, _) => end = Nanos::NEVER,
                (Some(length), None) => end += self::length(length)?,
                (Some(_), Some(_)) => {
                    return Err(format!("invalid phase '{part}'; write its name and a time, e.g. {PHASES_EXAMPLE}"));
                }
            }
            ends.push((phase, end));
        }
        if end > MAX_LENGTH && end != Nanos::NEVER {
            return Err(format!("invalid phases '{text}': longer than a year in total"));
        }
        Ok(Self { ends })
    }
}

const PHASES_EXAMPLE: &str = "healthy 30s, slow 10s, down 5s";
const MAX_LENGTH: Nanos = Nanos::from_secs(366 * 24 * 3600);

fn length(text: &str) -> Result<Nanos, String> {
    match Nanos::from(units::time(text)?) {
        Nanos::ZERO => Err(format!("invalid phase duration '{text}'; write at least 1us")),
        // Such a length could make the sum of all look like for ever.
        length if length > MAX_LENGTH => {
            Err(format!("phase duration '{text}' is too long; leave it out in the last phase for an unlimited one"))
        }
        length => Ok(length),
    }
}

fn unknown_phase(name: &str) -> String {
    format!("unknown phase '{name}'; choose {}", ServicePhase::ALL.map(ServicePhase::name).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(phases: &Phases, s: f64) -> (ServicePhase, f64, f64) {
        let spell = phases.at(Nanos::from_secs_f64(s));
        (spell.phase, spell.since.as_secs_f64(), spell.until.as_secs_f64())
    }

    #[test]
    fn phases_follow_each_other_and_repeat() {
        let phases = Phases::read("healthy 30s, slow 10s,down 5s").expect("valid");
        assert_eq!(at(&phases, 0.0), (ServicePhase::Healthy, 0.0, 30.0));
        assert_eq!(at(&phases, 29.9), (ServicePhase::Healthy, 0.0, 30.0));
        assert_eq!(at(&phases, 30.0), (ServicePhase::Slow, 30.0, 40.0));
        assert_eq!(at(&phases, 44.0), (ServicePhase::Dead, 40.0, 45.0));
        assert_eq!(at(&phases, 45.0), (ServicePhase::Healthy, 45.0, 75.0));
        assert_eq!(at(&phases, 45.0 * 1000.0 + 41.0), (ServicePhase::Dead, 45_040.0, 45_045.0));
    }

    #[test]
    fn a_last_phase_without_a_length_lasts_for_ever() {
        let phases = Phases::read("mix 1s, hung").expect("valid");
        assert_eq!(at(&phases, 0.5), (ServicePhase::Mix, 0.0, 1.0));
        let spell = PhaseInterval { phase: ServicePhase::Hung, since: Nanos::from_secs(1), until: Nanos::NEVER };
        assert_eq!(phases.at(Nanos::from_secs(1)), spell);
        assert_eq!(phases.at(Nanos::NEVER), spell);
        assert_eq!(Phases::read("mix"), Ok(Phases::default()));
    }

    #[test]
    fn an_invalid_phase_is_reported_with_what_to_write() {
        for (text, named) in [
            ("", "empty phase"),
            ("healthy 1s,", "empty phase"),
            ("sick 1s", "unknown phase 'sick'; choose mix, healthy, slow, failing, limited, down, hung"),
            ("healthy, down 5s", "invalid phase 'healthy': no duration"),
            ("healthy 30", "invalid time '30'"),
            ("healthy 0s", "write at least 1us"),
            ("healthy 1s 2s", "write its name and a time"),
            ("healthy=1s", "unknown phase"),
            ("healthy 9000h", "is too long"),
            ("healthy 8000h, down 8000h", "longer than a year"),
        ] {
            let why = Phases::read(text).expect_err(text);
            assert!(why.contains(named) && !why.contains('\n'), "{text}: {why}");
        }
    }

    proptest! {
        /// Naive model: walk from the start, phase by phase.
        #[test]
        fn the_phase_is_that_of_a_walk_from_the_start(
            lengths in prop::collection::vec((0..7_usize, 1..50_u64), 1..6), endless: bool, now in 0..1000_u64
        ) {
            let mut text: Vec<String> =
                lengths.iter().map(|(phase, ms)| format!("{} {ms}ms", ServicePhase::ALL[*phase].name())).collect();
            if endless {
                text.push("failing".to_owned());
            }
            let phases = Phases::read(&text.join(", ")).expect("valid");
            let (mut since, mut turn) = (0, 0);
            let naive = loop {
                let Some((phase, ms)) = lengths.get(turn) else {
                    if endless {
                        break (ServicePhase::Failing, since * 1_000_000, u64::MAX);
                    }
                    turn = 0;
                    continue;
                };
                if now < since + ms {
                    break (ServicePhase::ALL[*phase], since * 1_000_000, (since + ms) * 1_000_000);
                }
                since += ms;
                turn += 1;
            };
            let spell = phases.at(Nanos::from_millis(now));
            prop_assert_eq!(spell, PhaseInterval { phase: naive.0, since: Nanos(naive.1), until: Nanos(naive.2) });
        }

        #[test]
        fn now_is_always_within_its_phase(
            lengths in prop::collection::vec(1..u64::from(u32::MAX), 1..6), now in 0..u64::MAX
        ) {
            let text: Vec<String> = lengths.iter().map(|us| format!("mix {us}us")).collect();
            let spell = Phases::read(&text.join(",")).expect("valid").at(Nanos(now));
            prop_assert!(spell.since.0 <= now && now < spell.until.0, "{:?}", spell);
        }
    }
}

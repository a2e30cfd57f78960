//! Objectives of a request to a language model: it counts as goodput if it meets all of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_base::units;

/// Times of a request to a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlmTimes {
    /// Time to first token, from the intended start; none without a token.
    pub ttft: Option<Nanos>,
    /// Time per output token after the first; 0 with one token, none if their number is unknown.
    pub tpot: Option<Nanos>,
    /// Time from the intended start to the end of the response.
    pub e2e: Nanos,
}

/// Objectives of each request, such as `ttft:500ms tpot:50ms e2e:5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoodputObjectives {
    /// Maximum time to first token.
    pub ttft: Option<Nanos>,
    /// Maximum time per output token.
    pub tpot: Option<Nanos>,
    /// Maximum time to the end of the response.
    pub e2e: Option<Nanos>,
}

impl GoodputObjectives {
    /// Parses objectives, separated by spaces or commas. `e2el` is `e2e`, as in vLLM; a bare number is milliseconds, as
    /// there.
    ///
    /// # Errors
    /// First invalid objective, with what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        for part in text.split([' ', ',']).filter(|part| !part.is_empty()) {
            let (name, time) = part
                .split_once(':')
                .ok_or_else(|| format!("invalid objective '{part}'; write e.g. ttft:500ms tpot:50ms e2e:5s"))?;
            let place = match name {
                "ttft" => &mut parsed.ttft,
                "tpot" => &mut parsed.tpot,
                "e2e" | "e2el" => &mut parsed.e2e,
                _ => return Err(format!("unknown objective '{name}'; choose ttft, tpot or e2e")),
            };
            let is_bare = time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let with_unit = if is_bare { format!("{time}ms") } else { time.to_owned() };
            let limit = units::time(&with_unit)
                .map_err(|_| format!("invalid time '{time}' of {name}; write e.g. {name}:500ms"))?;
            if place.replace(limit.into()).is_some() {
                return Err(format!("two objectives of {name}; write one"));
            }
        }
        if parsed == Self::default() {
            return Err("no objectives; write e.g. ttft:500ms tpot:50ms e2e:5s".to_owned());
        }
        Ok(parsed)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a request meets all objectives. One that lacks a time does not meet the objective of that time.
    pub fn are_met(&self, times: &LlmTimes) -> bool {
        let holds = |limit: Option<Nanos>, time: Option<Nanos>| {
            limit.is_none_or(|limit| time.is_some_and(|time| time <= limit))
        };
        holds(self.ttft, times.ttft) && holds(self.tpot, times.tpot) && holds(self.e2e, Some(times.e2e))
    }
}

/// In the notation of [`GoodputObjectives::parse`]; empty without objectives.
impl fmt::Display for GoodputObjectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [("ttft", self.ttft), ("tpot", self.tpot), ("e2e", self.e2e)];
        let given = all.iter().filter_map(|(name, limit)| limit.map(|limit| format!("{name}:{limit}")));
        f.write_str(&given.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_parsed_in_the_notation_of_weir_and_of_vllm() {
        let all = GoodputObjectives {
            ttft: Some(Nanos::from_millis(500)),
            tpot: Some(Nanos::from_millis(50)),
            e2e: Some(Nanos::from_secs(5)),
        };
        assert_eq!(GoodputObjectives::parse("ttft:500ms tpot:50ms e2e:5s"), Ok(all));
        assert_eq!(GoodputObjectives::parse(&all.to_string()), Ok(all));
        assert_eq!(GoodputObjectives::parse("ttft:500,tpot:50,e2el:5000"), Ok(all));
        for (text, error) in [
            ("ttft", "invalid objective 'ttft'; write e.g. ttft:500ms tpot:50ms e2e:5s"),
            ("itl:5ms", "unknown objective 'itl'; choose ttft, tpot or e2e"),
            ("ttft:soon", "invalid time 'soon' of ttft; write e.g. ttft:500ms"),
            ("ttft:", "invalid time '' of ttft; write e.g. ttft:500ms"),
            ("ttft:1s ttft:2s", "two objectives of ttft; write one"),
            (" ", "no objectives; write e.g. ttft:500ms tpot:50ms e2e:5s"),
        ] {
            assert_eq!(GoodputObjectives::parse(text), Err(error.to_owned()));
        }
    }

    #[test]
    fn a_request_meets_all_objectives_or_is_no_goodput() {
        let objectives = GoodputObjectives::parse("ttft:10ms tpot:2ms").expect("objectives");
        let times = |ttft: u64, tpot: Option<u64>| LlmTimes {
            ttft: Some(Nanos::from_millis(ttft)),
            tpot: tpot.map(Nanos::from_millis),
            e2e: Nanos::from_secs(100),
        };
        assert!(objectives.are_met(&times(10, Some(2))));
        assert!(!objectives.are_met(&times(11, Some(2))));
        assert!(!objectives.are_met(&times(10, Some(3))));
        assert!(!objectives.are_met(&times(10, None)));
        assert!(!objectives.are_met(&LlmTimes { ttft: None, ..times(10, Some(2)) }));
    }
}

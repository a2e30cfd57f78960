//! Pauses of API keys by responses, as they are reported and stored.

use serde::{Deserialize, Serialize};

use super::job::UnixMs;
use weir_base::Nanos;
use weir_delivery::dispatch::{HostId, KeyPause, PauseCause};

/// Pause of a key at a host, which a response has stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// Name of the key; of one of them if all pause.
    #[serde(skip)]
    pub key: String,
    /// Whether all keys pause at this host.
    #[serde(default)]
    pub is_of_all_keys: bool,
    /// Host, with a non-default port.
    pub host: String,
    /// End, in milliseconds since 1970.
    pub(super) until_ms: i64,
    /// Cause in prose: a header.
    pub cause: String,
    /// Whether the response stated a longer one than `--max-pause`.
    #[serde(default)]
    pub is_capped: bool,
}

const RETRY_AFTER: &str = "Retry-After";

impl PauseRecord {
    pub(super) fn new(
        key: &str,
        is_of_all_keys: bool,
        host: &str,
        until: UnixMs,
        cause: PauseCause,
        is_capped: bool,
    ) -> Self {
        let cause = if cause == PauseCause::RetryAfter { RETRY_AFTER } else { "a rate-limit reset" };
        let (key, host, cause) = (key.to_owned(), host.to_owned(), cause.to_owned());
        Self { key, is_of_all_keys, host, until_ms: until.0, cause, is_capped }
    }

    /// Pause for a dispatch, by its numbers and its clock; None if it has ended.
    pub(super) fn to_dispatch(&self, host: HostId, key: u32, now: Nanos, wall: UnixMs) -> Option<KeyPause> {
        let rest_ms = u64::try_from(self.until_ms.saturating_sub(wall.0)).ok().filter(|ms| *ms > 0)?;
        let cause = if self.cause == RETRY_AFTER { PauseCause::RetryAfter } else { PauseCause::QuotaReset };
        let until = now + Nanos(rest_ms.saturating_mul(Nanos::MILLI.0));
        let (is_of_all_keys, is_capped) = (self.is_of_all_keys, self.is_capped);
        Some(KeyPause { host, key, is_of_all_keys, until, cause, is_capped })
    }

    /// End.
    pub fn until(&self) -> UnixMs {
        UnixMs(self.until_ms)
    }

    /// Subject of the pause: `key alice`, or `all keys`.
    pub fn subject(&self) -> String {
        match self.key.as_str() {
            "none" => "sending".into(),
            _ if self.is_of_all_keys => "all keys".into(),
            name => format!("key {name}"),
        }
    }

    /// One phrase: `key alice paused until 14:03:07 UTC by Retry-After of api.example.com`.
    pub fn phrase(&self) -> String {
        let s_of_day = self.until_ms.div_euclid(1000).rem_euclid(86_400);
        let (h, m, s) = (s_of_day / 3600, s_of_day / 60 % 60, s_of_day % 60);
        let capped = if self.is_capped { ", which is longer than --max-pause" } else { "" };
        format!("{} paused until {h:02}:{m:02}:{s:02} UTC by {} of {}{capped}", self.subject(), self.cause, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_phrase() {
        let at = UnixMs(1_763_821_387_000);
        let pause = PauseRecord::new("alice", false, "api.example", at, PauseCause::RetryAfter, false);
        assert_eq!(pause.phrase(), "key alice paused until 14:23:07 UTC by Retry-After of api.example");
        let all = PauseRecord { is_of_all_keys: true, is_capped: true, ..pause.clone() };
        let phrase =
            "all keys paused until 14:23:07 UTC by Retry-After of api.example, which is longer than --max-pause";
        assert_eq!(all.phrase(), phrase);
        assert!(PauseRecord { key: "none".into(), ..pause }.phrase().starts_with("sending paused until"));
    }
}

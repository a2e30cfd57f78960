//! Stands still for the last part of every period.
//!
//! With `1.0/5.0` and t seconds since the first request: frozen while t mod 5.0 >= 4.0. A frozen server neither reads,
//! accepts nor answers; the kernel goes on taking connections and bytes, as it does for any stalled process. Under even
//! load that gives the response times exactly: a share of 0.8 at once, the others spread evenly over 0 to 1 s, so p90
//! is 0.5 s and p99 is 0.95 s.

use std::str::FromStr;

use crate::behaviour::{Answer, Behaviour, Ticket};
use crate::clock::Nanos;

pub struct Freeze {
    frozen: Nanos,
    period: Nanos,
    first: Option<Nanos>, // when the first request arrived
}

impl FromStr for Freeze {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("--freeze {text}: not SECONDS/SECONDS with the first below the second");
        let (frozen, period) = text.split_once('/').ok_or_else(bad)?;
        let (frozen, period): (f64, f64) = (frozen.parse().map_err(|_| bad())?, period.parse().map_err(|_| bad())?);
        if !(frozen > 0.0 && frozen < period) {
            return Err(bad());
        }
        Ok(Self { frozen: (frozen * 1e9) as Nanos, period: (period * 1e9) as Nanos, first: None })
    }
}

impl Behaviour for Freeze {
    fn arrived(&mut self, now: Nanos, _ticket: Ticket) -> Answer {
        self.first.get_or_insert(now);
        Answer::Now
    }

    fn frozen_until(&self, now: Nanos) -> Option<Nanos> {
        let since = now - self.first?;
        let into = since % self.period;
        (into >= self.period - self.frozen).then(|| now + self.period - into)
    }

    fn reset(&mut self) {
        self.first = None;
    }
}

//! How long events of streams may wait in their sockets, so that one wake-up reads those of several connections. Pure.
//!
//! A read returns one timestamp, the arrival of its last byte. So an event may be read late without harm, unless the
//! next event of the same response comes meanwhile: then both have the time of the later one. How often that would
//! happen is known from the gaps themselves, as long as they are measured without waiting. So in one slot of twenty
//! nothing waits, and its gaps are what the wait is chosen by.

use weir_base::Nanos;

/// Waits to choose from, the longest first.
const WAITS: [Nanos; 4] = [Nanos(1_000_000), Nanos(500_000), Nanos(250_000), Nanos(125_000)];
/// Gaps up to this length may be joined: no figure changes by more, and weir promises no more than 1% and this.
const TOLERATED_GAP: Nanos = Nanos(50_000);
/// Maximum fraction of gaps that are joined, as its inverse: below what changes a 99.9th percentile.
const GAPS_PER_JOINED_ONE: u64 = 4_000;
/// Gaps that are to be known before anything waits.
const MIN_GAPS: u64 = 8_000;
/// Gaps above which older ones count half.
const MAX_GAPS: u64 = 32_000;
/// Maximum wait as a fraction of the mean response, as its inverse: the end of a response waits, too, and the next
/// request of a closed loop with it.
const RESPONSES_PER_WAIT: u64 = 200;
/// Minimum number of events in a wait: with fewer it would cost a wake-up instead of sparing one.
const MIN_EVENTS_PER_WAIT: u64 = 2;
/// Length of a slot, and number of slots of which the first one does not wait.
const SLOT: Nanos = Nanos(50_000_000);
const SLOTS_PER_SAMPLE: u64 = 20;
/// Number of responses over which their mean length is taken.
const MEAN_RESPONSES: u64 = 16;

/// Chooses the wait of one thread.
#[derive(Clone, Debug)]
pub struct ReadWait {
    slot: u64,
    /// Whether nothing waits in this slot, and its gaps count.
    is_sampling: bool,
    slot_events: u64,
    gaps: u64,
    /// Number of these gaps that each of [`WAITS`] could join.
    joinable: [u64; WAITS.len()],
    /// Mean length of responses; 0 before the first one has ended.
    mean_response: Nanos,
    /// Time of the first read.
    began: Option<Nanos>,
    chosen: Nanos,
}

impl Default for ReadWait {
    fn default() -> Self {
        Self {
            slot: 0,
            is_sampling: true,
            slot_events: 0,
            gaps: 0,
            joinable: [0; WAITS.len()],
            mean_response: Nanos::ZERO,
            began: None,
            chosen: Nanos::ZERO,
        }
    }
}

impl ReadWait {
    /// Records an event that was read, with the gap before it, if it is not the first one.
    #[inline]
    pub fn record_event(&mut self, gap: Option<Nanos>) {
        if !self.is_sampling {
            return;
        }
        self.slot_events += 1;
        // Those of one packet have the same time in any case.
        let Some(gap) = gap.filter(|gap| *gap > Nanos::ZERO) else { return };
        self.gaps += 1;
        if gap > TOLERATED_GAP && gap < WAITS[0] {
            let joins = |(count, wait): (&mut u64, &Nanos)| *count += u64::from(gap < *wait);
            self.joinable.iter_mut().zip(&WAITS).for_each(joins);
        }
    }

    /// Records a response that has ended, with its time from the send.
    pub fn record_response(&mut self, service: Nanos) {
        self.mean_response = match self.mean_response {
            Nanos::ZERO => service,
            mean => Nanos(mean.0 - mean.0 / MEAN_RESPONSES + service.0 / MEAN_RESPONSES),
        };
    }

    /// Time that may pass after a read at `now` until the next one; 0 if events are to be read when they come.
    pub fn after(&mut self, now: Nanos) -> Nanos {
        let began = *self.began.get_or_insert(now);
        let slot = now.0 / SLOT.0;
        if slot != self.slot {
            if self.is_sampling {
                // Of a slot that was left out, or joined late, the number of events is too low.
                self.chosen = self.choose(now - began);
            }
            (self.slot, self.slot_events) = (slot, 0);
            self.is_sampling = self.chosen == Nanos::ZERO || slot.is_multiple_of(SLOTS_PER_SAMPLE);
        }
        if self.is_sampling { Nanos::ZERO } else { self.chosen }
    }

    /// Chooses a wait; `elapsed` is the time since the first read.
    fn choose(&mut self, elapsed: Nanos) -> Nanos {
        if self.gaps > MAX_GAPS {
            self.gaps /= 2;
            self.joinable.iter_mut().for_each(|count| *count /= 2);
        }
        // While none has ended, they last as long as that at least.
        let response = if self.mean_response == Nanos::ZERO { elapsed } else { self.mean_response };
        let is_allowed = |(wait, joinable): &(&Nanos, &u64)| {
            let events = u128::from(self.slot_events) * u128::from(wait.0) / u128::from(SLOT.0);
            *joinable * GAPS_PER_JOINED_ONE <= self.gaps
                && events >= u128::from(MIN_EVENTS_PER_WAIT)
                && wait.0 * RESPONSES_PER_WAIT <= response.0
        };
        if self.gaps < MIN_GAPS {
            return Nanos::ZERO;
        }
        WAITS.iter().zip(&self.joinable).find(is_allowed).map_or(Nanos::ZERO, |(wait, _)| *wait)
    }
}

#[cfg(test)]
mod tests;

//! Slots of one host: its part of the maximum requests in flight.
//!
//! A host that responds returns its slots; a host that hangs keeps them until its requests time out, and they are
//! missing to all others. So a host earns its slots: it begins with a few, gets one more with each response, and twice
//! as many with each 500 ms without a failure. That is quick for a host that responds, and for a single one whose
//! responses take a minute. Among several hosts time earns nothing once half of the slots are taken, a host without
//! responses for a while has no more than at the begin, and the last slots stay free: a host may have at most eight
//! times as many as are free (the dynamic threshold of Choudhury and Hahne, 1998), so that the next one finds some.

use super::Nanos;

/// A host begins with 1/N of all slots.
const INITIAL_SLOTS_DIVISOR: usize = 32;
/// Slots at the begin of a single host, at least.
const MIN_INITIAL_SLOTS_ALONE: usize = 8;
/// Time without a failure that doubles a host's slots.
const DOUBLING_INTERVAL: Nanos = Nanos::from_millis(500);
/// Maximum slots of one of several hosts, per free slot.
const MAX_SLOTS_PER_FREE_SLOT: usize = 8;

/// Slots of all hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotPool {
    pub(super) all: usize,
    pub(super) free: usize,
    /// Whether there are several hosts.
    pub(super) is_shared: bool,
    /// Time without a response after which a host counts as silent.
    pub(super) silence_timeout: Nanos,
}

/// Number of requests that a host may have in flight, which grows with its responses.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSlots {
    /// Requests in flight.
    pub(super) in_flight: usize,
    /// Earned slots; `None` before the first request, and after an outage.
    earned: Option<usize>,
    /// Start of the time that earns slots.
    growing_since: Nanos,
    /// Time of the last response, or of the last request with none in flight.
    responded_at: Nanos,
    /// Whether it has responded since it began to earn slots.
    has_responded: bool,
}

impl HostSlots {
    pub(super) fn sent(&mut self, now: Nanos, pool: SlotPool) {
        if self.earned.is_none() {
            self.earned = Some(initial_slots(pool));
            self.growing_since = now;
        }
        if self.in_flight == 0 {
            self.responded_at = now;
        }
        self.in_flight += 1;
    }

    pub(super) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn responded(&mut self, now: Nanos) {
        self.responded_at = now;
        self.has_responded = true;
        self.earned = self.earned.map(|earned| earned.saturating_add(1));
    }

    /// Records a failure; a host that has not responded so far loses a slot.
    pub(super) fn failed(&mut self, now: Nanos) {
        self.growing_since = self.growing_since.max(now);
        if !self.has_responded {
            self.earned = self.earned.map(|earned| earned.saturating_sub(1).max(1));
        }
    }

    /// Resets the slots after an outage.
    pub(super) fn reset(&mut self) {
        (self.earned, self.has_responded) = (None, false);
    }

    /// Whether it may take one more slot.
    pub(super) fn has_slot(&self, now: Nanos, pool: SlotPool) -> bool {
        if pool.is_shared && self.in_flight >= MAX_SLOTS_PER_FREE_SLOT.saturating_mul(pool.free) {
            return false;
        }
        let is_silent = pool.is_shared && self.in_flight > 0 && now - self.responded_at >= pool.silence_timeout;
        let earned = self.earned.filter(|_| !is_silent).unwrap_or_else(|| initial_slots(pool));
        if self.in_flight < earned {
            return true;
        }
        let steps = (now - self.growing_since)
            .0
            .checked_div(DOUBLING_INTERVAL.0)
            .filter(|_| self.earned.is_some())
            .unwrap_or(0)
            .min(16);
        let by_time = earned.saturating_mul(1 << steps);
        self.in_flight < by_time && (!pool.is_shared || pool.free > pool.all / 2)
    }

    /// Time of the next growth by time alone.
    pub(super) fn next_growth_at(&self, now: Nanos) -> Nanos {
        let steps = (now - self.growing_since).0 / DOUBLING_INTERVAL.0;
        self.growing_since + Nanos((steps + 1).saturating_mul(DOUBLING_INTERVAL.0))
    }
}

/// Slots of a host at the begin.
fn initial_slots(pool: SlotPool) -> usize {
    let least = if pool.is_shared { 1 } else { MIN_INITIAL_SLOTS_ALONE };
    (pool.all / INITIAL_SLOTS_DIVISOR).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// Takes all slots that it may at this time.
    fn take(share: &mut HostSlots, at: Nanos, all: usize, others: usize, shared: bool) -> usize {
        loop {
            let pool = SlotPool {
                all,
                free: all.saturating_sub(share.in_flight + others),
                is_shared: shared,
                silence_timeout: ms(1000),
            };
            if pool.free == 0 || !share.has_slot(at, pool) {
                return share.in_flight;
            }
            share.sent(at, pool);
        }
    }

    #[test]
    fn a_single_host_that_takes_a_minute_to_respond_has_all_slots_in_three_seconds() {
        let mut share = HostSlots::default();
        let taken: Vec<_> = (0..7).map(|n| take(&mut share, ms(500 * n), 256, 0, false)).collect();
        assert_eq!(taken, [8, 16, 32, 64, 128, 256, 256]);
    }

    #[test]
    fn a_host_that_responds_doubles_its_slots_with_each_round() {
        let mut share = HostSlots::default();
        for taken in [8, 16, 32, 64] {
            assert_eq!(take(&mut share, ms(1), 256, 0, false), taken);
            for _ in 0..taken {
                share.ended();
                share.responded(ms(1));
            }
        }
    }

    #[test]
    fn a_host_that_hangs_beside_busy_ones_has_a_thirtieth_of_the_slots() {
        let mut share = HostSlots::default();
        for at in 0..60 {
            assert_eq!(take(&mut share, ms(1000 * at), 256, 200, true), 8);
        }
    }

    #[test]
    fn a_host_without_responses_among_others_gets_no_more() {
        let mut share = HostSlots { earned: Some(1000), ..HostSlots::default() };
        assert_eq!(take(&mut share, ms(0), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(900), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(1000), 256, 200, true), 20);
    }

    #[test]
    fn no_host_takes_the_last_slots() {
        let mut share = HostSlots { earned: Some(1000), ..HostSlots::default() };
        assert_eq!(take(&mut share, ms(0), 256, 0, true), 228);
        let mut one = HostSlots::default();
        assert_eq!(take(&mut one, ms(0), 1, 0, true), 1);
    }
}

//! How many of the places for requests one host may take.
//!
//! A place is a request without an answer. A host that answers gives its places back; one that hangs keeps what it got
//! until its requests have timed out, and what it keeps is missing to all others. So a host earns its places: it begins
//! with a few, gets one more with each answer, and twice as many with each [`DOUBLING_INTERVAL`] of time that brings no bad news: that
//! is quick for a host that answers, and for one alone whose answers take a minute. Among others, time earns nothing once
//! half of the places are taken, a host that has fallen silent gets no more than it began with, and nobody takes the last
//! ones: a host may have eight times as many as are free (the dynamic threshold of Choudhury and Hahne, 1998), so that the
//! next one to come finds some.

use super::Nanos;

/// A host begins with this part of all places.
const INITIAL_SLOTS_DIVISOR: usize = 32;
/// And with so many if there is no other.
const MIN_INITIAL_SLOTS_ALONE: usize = 8;
/// In so long time alone doubles what a host may have.
const DOUBLING_INTERVAL: Nanos = Nanos::from_millis(500);
/// A host among others may have so many times what is free.
const MAX_SLOTS_PER_FREE_SLOT: usize = 8;

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotPool {
    pub(super) all: usize,
    pub(super) free: usize,
    /// There are other hosts.
    pub(super) is_shared: bool,
    /// A host that has not answered for so long has fallen silent.
    pub(super) silence_timeout: Nanos,
}

/// One host's part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSlots {
    /// Its requests without an answer.
    pub(super) in_flight: usize,
    /// What it has earned; None: nothing was sent yet, or all has to be earned again.
    earned: Option<usize>,
    /// Since when time counts.
    growing_since: Nanos,
    /// When it answered last, or had nothing to answer.
    responded_at: Nanos,
    /// It has answered since it began to earn.
    has_responded: bool,
}

impl HostSlots {
    pub(super) fn sent(&mut self, now: Nanos, places: SlotPool) {
        if self.earned.is_none() {
            self.earned = Some(initial_slots(places));
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

    /// A request failed. Of a host that has answered nobody yet no more is asked for it.
    pub(super) fn failed(&mut self, now: Nanos) {
        self.growing_since = self.growing_since.max(now);
        if !self.has_responded {
            self.earned = self.earned.map(|earned| earned.saturating_sub(1).max(1));
        }
    }

    /// It was down.
    pub(super) fn reset(&mut self) {
        (self.earned, self.has_responded) = (None, false);
    }

    /// Whether it may take one more.
    pub(super) fn has_slot(&self, now: Nanos, places: SlotPool) -> bool {
        if places.is_shared && self.in_flight >= MAX_SLOTS_PER_FREE_SLOT.saturating_mul(places.free) {
            return false;
        }
        let is_silent = places.is_shared && self.in_flight > 0 && now - self.responded_at >= places.silence_timeout;
        let earned = self.earned.filter(|_| !is_silent).unwrap_or_else(|| initial_slots(places));
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
        self.in_flight < by_time && (!places.is_shared || places.free > places.all / 2)
    }

    /// When time alone may have earned it one more.
    pub(super) fn next_growth_at(&self, now: Nanos) -> Nanos {
        let steps = (now - self.growing_since).0 / DOUBLING_INTERVAL.0;
        self.growing_since + Nanos((steps + 1).saturating_mul(DOUBLING_INTERVAL.0))
    }
}

/// What every host has from the start.
fn initial_slots(places: SlotPool) -> usize {
    let least = if places.is_shared { 1 } else { MIN_INITIAL_SLOTS_ALONE };
    (places.all / INITIAL_SLOTS_DIVISOR).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// Takes what it may at this time.
    fn take(share: &mut HostSlots, at: Nanos, all: usize, others: usize, shared: bool) -> usize {
        loop {
            let places = SlotPool {
                all,
                free: all.saturating_sub(share.in_flight + others),
                is_shared: shared,
                silence_timeout: ms(1000),
            };
            if places.free == 0 || !share.has_slot(at, places) {
                return share.in_flight;
            }
            share.sent(at, places);
        }
    }

    #[test]
    fn a_host_alone_that_takes_a_minute_to_answer_has_all_places_in_three_seconds() {
        let mut share = HostSlots::default();
        let taken: Vec<_> = (0..7).map(|n| take(&mut share, ms(500 * n), 256, 0, false)).collect();
        assert_eq!(taken, [8, 16, 32, 64, 128, 256, 256]);
    }

    #[test]
    fn a_host_that_answers_doubles_what_it_has_with_each_round() {
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
    fn a_host_that_hangs_beside_busy_ones_has_a_thirtieth() {
        let mut share = HostSlots::default();
        for at in 0..60 {
            assert_eq!(take(&mut share, ms(1000 * at), 256, 200, true), 8);
        }
    }

    #[test]
    fn a_host_that_falls_silent_among_others_gets_no_more() {
        let mut share = HostSlots { earned: Some(1000), ..HostSlots::default() };
        assert_eq!(take(&mut share, ms(0), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(900), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(1000), 256, 200, true), 20);
    }

    #[test]
    fn nobody_takes_the_last_places() {
        let mut share = HostSlots { earned: Some(1000), ..HostSlots::default() };
        assert_eq!(take(&mut share, ms(0), 256, 0, true), 228);
        let mut one = HostSlots::default();
        assert_eq!(take(&mut one, ms(0), 1, 0, true), 1);
    }
}

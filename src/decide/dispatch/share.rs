//! How many of the places for requests one host may take.
//!
//! A place is a request without an answer. A host that answers gives its places back; one that hangs keeps what it got
//! until its requests have timed out, and what it keeps is missing to all others. So a host earns its places: it begins
//! with a few, gets one more with each answer, and twice as many with each [`STEP`] of time that brings no bad news: that
//! is quick for a host that answers, and for one alone whose answers take a minute. Among others, time earns nothing once
//! half of the places are taken, a host that has fallen silent gets no more than it began with, and nobody takes the last
//! ones: a host may have eight times as many as are free (the dynamic threshold of Choudhury and Hahne, 1998), so that the
//! next one to come finds some.

use super::Nanos;

/// A host begins with this part of all places.
const PART: usize = 32;
/// And with so many if there is no other.
const ALONE: usize = 8;
/// In so long time alone doubles what a host may have.
const STEP: Nanos = Nanos::from_millis(500);
/// A host among others may have so many times what is free.
const THRESHOLD: usize = 8;

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) all: usize,
    pub(super) free: usize,
    /// There are other hosts.
    pub(super) shared: bool,
    /// A host that has not answered for so long has fallen silent.
    pub(super) silence: Nanos,
}

/// One host's part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// Its requests without an answer.
    pub(super) in_flight: usize,
    /// What it has earned; None: nothing was sent yet, or all has to be earned again.
    earned: Option<usize>,
    /// Since when time counts.
    since: Nanos,
    /// When it answered last, or had nothing to answer.
    heard: Nanos,
    /// It has answered since it began to earn.
    is_known: bool,
}

impl Share {
    pub(super) fn sent(&mut self, now: Nanos, places: Places) {
        if self.earned.is_none() {
            self.earned = Some(first(places));
            self.since = now;
        }
        if self.in_flight == 0 {
            self.heard = now;
        }
        self.in_flight += 1;
    }

    pub(super) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn answered(&mut self, now: Nanos) {
        self.heard = now;
        self.is_known = true;
        self.earned = self.earned.map(|earned| earned.saturating_add(1));
    }

    /// A request failed. Of a host that has answered nobody yet no more is asked for it.
    pub(super) fn failed(&mut self, now: Nanos) {
        self.since = self.since.max(now);
        if !self.is_known {
            self.earned = self.earned.map(|earned| earned.saturating_sub(1).max(1));
        }
    }

    /// It was down.
    pub(super) fn start_again(&mut self) {
        (self.earned, self.is_known) = (None, false);
    }

    /// Whether it may take one more.
    pub(super) fn has_room(&self, now: Nanos, places: Places) -> bool {
        if places.shared && self.in_flight >= THRESHOLD.saturating_mul(places.free) {
            return false;
        }
        let is_silent = places.shared && self.in_flight > 0 && now - self.heard >= places.silence;
        let earned = self.earned.filter(|_| !is_silent).unwrap_or_else(|| first(places));
        if self.in_flight < earned {
            return true;
        }
        let steps = (now - self.since).0.checked_div(STEP.0).filter(|_| self.earned.is_some()).unwrap_or(0).min(16);
        let by_time = earned.saturating_mul(1 << steps);
        self.in_flight < by_time && (!places.shared || places.free > places.all / 2)
    }

    /// When time alone may have earned it one more.
    pub(super) fn next_step(&self, now: Nanos) -> Nanos {
        let steps = (now - self.since).0 / STEP.0;
        self.since + Nanos((steps + 1).saturating_mul(STEP.0))
    }
}

/// What every host has from the start.
fn first(places: Places) -> usize {
    let least = if places.shared { 1 } else { ALONE };
    (places.all / PART).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// Takes what it may at this time.
    fn take(share: &mut Share, at: Nanos, all: usize, others: usize, shared: bool) -> usize {
        loop {
            let places = Places { all, free: all.saturating_sub(share.in_flight + others), shared, silence: ms(1000) };
            if places.free == 0 || !share.has_room(at, places) {
                return share.in_flight;
            }
            share.sent(at, places);
        }
    }

    #[test]
    fn a_host_alone_that_takes_a_minute_to_answer_has_all_places_in_three_seconds() {
        let mut share = Share::default();
        let taken: Vec<_> = (0..7).map(|n| take(&mut share, ms(500 * n), 256, 0, false)).collect();
        assert_eq!(taken, [8, 16, 32, 64, 128, 256, 256]);
    }

    #[test]
    fn a_host_that_answers_doubles_what_it_has_with_each_round() {
        let mut share = Share::default();
        for taken in [8, 16, 32, 64] {
            assert_eq!(take(&mut share, ms(1), 256, 0, false), taken);
            for _ in 0..taken {
                share.ended();
                share.answered(ms(1));
            }
        }
    }

    #[test]
    fn a_host_that_hangs_beside_busy_ones_has_a_thirtieth() {
        let mut share = Share::default();
        for at in 0..60 {
            assert_eq!(take(&mut share, ms(1000 * at), 256, 200, true), 8);
        }
    }

    #[test]
    fn a_host_that_falls_silent_among_others_gets_no_more() {
        let mut share = Share { earned: Some(1000), ..Share::default() };
        assert_eq!(take(&mut share, ms(0), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(900), 256, 200, true), 50);
        (0..30).for_each(|_| share.ended());
        assert_eq!(take(&mut share, ms(1000), 256, 200, true), 20);
    }

    #[test]
    fn nobody_takes_the_last_places() {
        let mut share = Share { earned: Some(1000), ..Share::default() };
        assert_eq!(take(&mut share, ms(0), 256, 0, true), 228);
        let mut one = Share::default();
        assert_eq!(take(&mut one, ms(0), 1, 0, true), 1);
    }
}

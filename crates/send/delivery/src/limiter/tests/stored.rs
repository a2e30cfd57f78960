//! A key that is stored and read is the same, and one that makes no sense is not read.

use proptest::prelude::*;

use super::super::*;
use crate::key_window::KeyLimit;
use weir_limits::limit_unit::LimitUnit;
use weir_limits::models::{LimitModel, LimitWindow};

pub(super) fn rules(limits: &[&str], delay_bound: Option<Nanos>) -> LimiterRules {
    let limit = |text: &&str| KeyLimit {
        window: LimitWindow::read(text, LimitModel::SlidingLog).expect(text),
        unit: LimitUnit::Requests,
    };
    let limits = limits.iter().map(limit).collect();
    LimiterRules {
        key: KeyRules { limits, delay_bound, ..KeyRules::default() },
        learns_delay_bound: false,
        max_pause: Nanos::from_secs(3600),
    }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

#[test]
fn a_grant_that_is_not_taken_in_time_counts_as_taken_at_its_end() {
    let rules = rules(&["1/1s"], Some(ms(50)));
    let mut key = LimiterKey::new(&rules);
    assert!(key.grant(ms(0), 1, 1, Some(GRANT_VALIDITY)).is_ok());
    assert_eq!(key.earliest(ms(1), 1), GRANT_VALIDITY, "then it is known");
    assert_eq!(key.earliest(GRANT_VALIDITY, 1), GRANT_VALIDITY + ms(50 + 1001));
}

#[test]
fn a_slot_that_is_given_back_was_never_used() {
    let rules = rules(&["1/1s", "concurrency:1"], Some(ms(50)));
    let mut key = LimiterKey::new(&rules);
    let slot = key.grant(ms(5), 1, 1, None).unwrap();
    assert_eq!(key.earliest(ms(6), 1), Nanos::NEVER);
    key.apply(&rules, slot, &SlotEvent::Unsent, ms(7));
    assert!(key.is_idle(ms(7)) && key.earliest(ms(7), 1) == Nanos::ZERO);
}

#[test]
fn a_slot_that_is_given_back_late_frees_its_window_until_it_may_be_others() {
    let rules = rules(&["2/1s"], Some(ms(50)));
    let mut key = LimiterKey::new(&rules);
    let first = key.grant(ms(0), 1, 1, None).unwrap();
    let second = key.grant(ms(10), 1, 1, None).unwrap();
    key.apply(&rules, second, &SlotEvent::Unsent, ms(400));
    assert_eq!(key.earliest(ms(401), 1), Nanos::ZERO);
    key.grant(ms(402), 1, 1, None).unwrap();
    key.apply(&rules, first, &SlotEvent::Unsent, ms(1100));
    assert_eq!(key.earliest(ms(1101), 2), Nanos::ZERO);
    key.grant(ms(1102), 1, 1, None).unwrap();
    assert_eq!(key.earliest(ms(1103), 1), ms(402 + 50 + 1001), "what has expired is not taken back from others");
}

#[test]
fn the_slots_of_a_holder_that_is_gone_count_as_sent_and_block_nothing() {
    for (bound, at, free_at) in
        [(None, ms(100) + FORGOTTEN_AFTER, ms(100) + FORGOTTEN_AFTER + ms(1001)), (Some(ms(50)), ms(101), ms(1051))]
    {
        let rules = rules(&["1/1s"], bound);
        let mut key = LimiterKey::new(&rules);
        key.grant(ms(0), 1, 7, None).unwrap();
        assert_eq!(key.holders(), [7]);
        key.lost(7, ms(100));
        assert!(key.holders().is_empty());
        assert_eq!(key.earliest(at, 1), free_at);
    }
    let rules = rules(&["concurrency:1"], None);
    let mut key = LimiterKey::new(&rules);
    key.grant(ms(0), 1, 7, None).unwrap();
    key.lost(7, ms(100));
    // As long again as it was in flight.
    assert!(key.earliest(ms(1100), 1) <= ms(2200));
}

#[test]
fn a_program_that_is_late_itself_waits_from_its_response_on() {
    for (bound, response, free_at) in [
        (2, 1, 1 + 1001),
        (2, 4, 4 + 1001),
        (2, 49, 49 + 1001),
        (2, 300, 2 + 1001),
        (30, 50, 30 + 1001),
        (30, 70, 70 + 1001),
        (30, 300, 30 + 1001),
    ] {
        let rules = rules(&["1/1s"], Some(ms(bound)));
        let mut key = LimiterKey::new(&rules);
        let slot = key.grant(ms(0), 1, 1, None).unwrap();
        key.apply(&rules, slot, &SlotEvent::Responded(None), ms(response));
        assert_eq!(key.earliest(ms(response), 1), ms(free_at), "bound {bound} ms, response after {response} ms");
    }
}

#[test]
fn a_response_that_is_later_than_all_before_is_the_proof_of_its_arrival() {
    let rules = LimiterRules { learns_delay_bound: true, ..rules(&["1/1s"], None) };
    let mut key = LimiterKey::new(&rules);
    let mut at = ms(0);
    for _ in 0..500 {
        let slot = key.grant(at, 1, 1, None).unwrap();
        key.apply(&rules, slot, &SlotEvent::Responded(None), at + ms(100));
        at += ms(1101);
    }
    assert_eq!(key.delay_bound(), Some(ms(55)));
    for (response, proof) in [(90, 55), (180, 180)] {
        let slot = key.grant(at, 1, 1, None).unwrap();
        key.apply(&rules, slot, &SlotEvent::Responded(None), at + ms(response));
        assert_eq!(key.earliest(at + ms(response), 1), at + ms(proof + 1001));
        at += ms(1300);
    }
}

#[test]
fn looks_that_are_not_stored_do_not_move_the_end_of_a_slot() {
    let rules = rules(&["concurrency:1"], Some(ms(2)));
    let mut key = LimiterKey::new(&rules);
    key.grant(ms(0), 1, 7, Some(GRANT_VALIDITY)).unwrap();
    key.lost(7, ms(10_000));
    let free_at: Vec<Nanos> = [11_000, 15_000, 21_999].map(|at| key.clone().earliest(ms(at), 1)).into();
    assert_eq!(free_at, [ms(22_000); 3]);
}

#[test]
fn a_slot_of_a_key_whose_past_is_lost_is_void() {
    let rules = rules(&["2/1s"], Some(ms(2)));
    let mut old = LimiterKey::begun_at(&rules, ms(1));
    let slot = old.grant(ms(1), 1, 1, None).unwrap();
    let mut new = LimiterKey::worst_case(&rules, ms(5));
    let free_at = new.earliest(ms(5), 1);
    new.apply(&rules, slot, &SlotEvent::Unsent, ms(6));
    assert_eq!((new.earliest(ms(6), 1), free_at), (free_at, ms(5 + 2 + 1001)));
}

#[test]
fn a_rejection_pauses_the_key_for_the_stated_time() {
    let rules = rules(&["20/1s"], Some(ms(50)));
    let mut key = LimiterKey::new(&rules);
    let slot = key.grant(ms(0), 1, 1, None).unwrap();
    let headers = RateLimitHeaders { retry_after: Some(ms(3000)), ..RateLimitHeaders::default() };
    key.apply(&rules, slot, &SlotEvent::Responded(Some(ResponseReport { status: 429, headers })), ms(80));
    assert_eq!(key.earliest(ms(81), 1), ms(3080));
}

#[test]
fn another_limit_is_not_the_same_key() {
    let key = LimiterKey::new(&rules(&["20/1s"], None));
    assert!(key.clone().restored(&rules(&["20/1s"], Some(ms(5)))).is_some());
    assert!(key.clone().restored(&rules(&["21/1s"], None)).is_none());
    assert!(key.restored(&rules(&["20/1s", "5/1h"], None)).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever digits a file has, reading and using it does not fail the process.
    #[test]
    fn changed_numbers_are_used_or_rejected(
        limits in prop::sample::subsequence(vec!["20/1s", "bucket:5/1s", "counter:9/2s", "concurrency:3"], 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..12), 1..6),
    ) {
        let rules = rules(&limits, Some(ms(20)));
        let mut key = LimiterKey::new(&rules);
        for n in 0..6 {
            let slot = key.grant(ms(n), 1, n, (n % 2 == 0).then_some(GRANT_VALIDITY));
            if let Some(slot) = slot.ok().filter(|_| n % 3 == 0) {
                key.apply(&rules, slot, &SlotEvent::Responded(None), ms(n + 3));
            }
        }
        let mut text = serde_json::to_string(&key).unwrap().into_bytes();
        for (index, digit) in changes {
            let digits: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_ascii_digit()).collect();
            let at = *index.get(&digits);
            match digit {
                0..=9 => text[at] = b'0' + digit,
                // A longer number.
                _ => { text.splice(at..at, std::iter::repeat_n(b'9', 19)); }
            }
        }
        let read = serde_json::from_slice::<LimiterKey>(&text).ok().and_then(|key| key.restored(&rules));
        if let Some(mut key) = read {
            let slot = key.grant(ms(50), 1, 1, None);
            key.lost(2, ms(60));
            if let Ok(slot) = slot {
                key.apply(&rules, slot, &SlotEvent::Responded(None), ms(100));
            }
            key.earliest(ms(5000), 1);
            key.is_idle(ms(100_000));
        }
    }
}

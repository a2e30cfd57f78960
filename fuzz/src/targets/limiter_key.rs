//! Stored keys of a limiter: one that is not of these limits, or whose numbers contradict one another, is not read;
//! nothing panics with one that is, and it is written as it was read.

use weir_base::Nanos;
use weir_delivery::key_window::{KeyLimit, KeyRules};
use weir_delivery::limiter::{LimiterKey, LimiterRules, SlotEvent};
use weir_limits::models::{LimitModel, LimitWindow};

const LIMITS: [&str; 4] = ["20/1s", "bucket:5/1s", "counter:9/2s", "concurrency:3"];

crate::target!(|input: (u8, &[u8])| {
    let (chosen, text) = input;
    let chosen = LIMITS.iter().enumerate().filter(|(index, _)| chosen >> index & 1 == 1);
    let window = |text: &str| LimitWindow::read(text, LimitModel::SlidingLog).ok().map(KeyLimit::new);
    let limits = chosen.filter_map(|(_, text)| window(text)).collect();
    let key = KeyRules { limits, delay_bound: Some(Nanos::from_millis(20)), ..KeyRules::default() };
    let rules = LimiterRules { key, learns_delay_bound: false, max_pause: Nanos::from_secs(60) };
    let read = serde_json::from_slice::<LimiterKey>(text).ok().and_then(|key| key.restored(&rules));
    let Some(mut key) = read else { return };
    let written = serde_json::to_vec(&key).unwrap_or_default();
    let again = serde_json::from_slice::<LimiterKey>(&written).ok().and_then(|key| key.restored(&rules));
    assert!(again.is_some(), "what was read is read again");
    let now = Nanos::from_secs(10);
    let slot = key.grant(now, 1, 1, None);
    key.lost(2, now + Nanos::MILLI);
    if let Ok(slot) = slot {
        key.apply(&rules, slot, &SlotEvent::Responded(None), now + Nanos::from_millis(5));
    }
    key.earliest(Nanos::from_secs(20), 1);
    let mut moved = key.clone().moved(&rules, Nanos::from_secs(30), Nanos::SECOND);
    moved.earliest(Nanos::from_secs(31), 1);
    key.is_idle(Nanos::from_secs(4000));
});

//! The pace by itself.

use super::{Nanos, Pace};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

#[test]
fn until_the_first_rejection_nothing_is_paced() {
    let mut pace = Pace::default();
    let mut sent = 0;
    // No response comes for a second.
    for at in 0..1000 {
        while pace.room() <= ms(at) {
            pace.sent(ms(at));
            sent += 1;
        }
    }
    assert!((256..300).contains(&sent), "{sent}");
    assert_eq!((pace.rate_per_s(), pace.most_in_flight()), (f64::INFINITY, None));
}

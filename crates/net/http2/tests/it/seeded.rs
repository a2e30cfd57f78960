//! Seeded connections; the example `seeded_frames` plays as many as are wanted.

use weir_http2::error_code::ErrorCode;

use crate::seeded_peer::{FrameMistakes, FrameTally, play};

/// Seeds of a run that takes a second or two without optimisation.
const SEEDS: u64 = 400;

#[test]
fn a_client_does_what_the_rules_demand_for_every_frame() {
    let (mistakes, mut tally) = (FrameMistakes::new(), FrameTally::default());
    for seed in 0..SEEDS {
        play(seed, &mistakes, &mut tally);
    }
    assert!(tally.frame_count() > 80_000 && tally.frames.iter().all(|count| *count > 0), "{tally:?}");
    assert!(tally.compared > 1_000 && tally.whole > tally.compared / 2, "{tally:?}");
    for code in [ErrorCode::PROTOCOL_ERROR, ErrorCode::FRAME_SIZE_ERROR, ErrorCode::COMPRESSION_ERROR] {
        assert!(tally.ends.contains_key(&code.0), "{code}: {tally:?}");
    }
    assert!(tally.resets.contains_key(&ErrorCode::PROTOCOL_ERROR.0), "{tally:?}");
}

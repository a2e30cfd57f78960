//! One more for each answer, a tenth less for each loss.
//!
//! As `AIMDLimit` of Netflix' concurrency-limits 0.5: 20 at first, at least 20, at most 200, x 0.9 for a drop or an
//! answer that took over 5 s; it grows only while half of it is used. A drop is a call that the upstream refused, or that
//! met its deadline.

use super::Algorithm;
use crate::decide::Nanos;
use crate::simulate::gate::{Ended, How};

const LEAST: u32 = 20;
const MOST: u32 = 200;
const BACKOFF: f64 = 0.9;
const TIMEOUT: Nanos = Nanos::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct Aimd(u32);

impl Default for Aimd {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl Algorithm for Aimd {
    fn ended(&mut self, now: Nanos, ended: &Ended) {
        if ended.how != How::Answered || now - ended.began > TIMEOUT {
            self.0 = (f64::from(self.0) * BACKOFF) as u32;
        } else if ended.beside * 2 >= self.0 {
            self.0 += 1;
        }
        self.0 = self.0.clamp(LEAST, MOST);
    }

    fn limit(&self) -> Option<u32> {
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(aimd: &mut Aimd, beside: u32, how: How) -> u32 {
        aimd.ended(Nanos::SECOND, &Ended { began: Nanos::ZERO, beside, lag: Nanos::ZERO, how });
        aimd.0
    }

    #[test]
    fn it_grows_by_one_while_half_is_used_and_loses_a_tenth_by_a_loss() {
        let mut aimd = Aimd(100);
        assert_eq!(after(&mut aimd, 50, How::Answered), 101);
        assert_eq!(after(&mut aimd, 50, How::Answered), 101);
        assert_eq!(after(&mut aimd, 101, How::Refused), 90);
        assert_eq!(after(&mut aimd, 101, How::GivenUp), 81);
        assert_eq!((after(&mut Aimd(200), 200, How::Answered), after(&mut Aimd(20), 20, How::Refused)), (200, 20));
    }
}

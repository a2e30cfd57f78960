//! Bytes of a run per second.

use super::Run;

/// Length of a run that has taken no time, in seconds.
const NO_LENGTH_S: f64 = 1e-9;

impl Run {
    /// Whether its requests are connections that only listen.
    pub fn listens(&self) -> bool {
        self.websocket.is_some() && self.streams.is_some() && self.steps.is_empty()
    }

    /// Bytes read and written per second: those of a response, times the rate of responses. As for that rate, what is
    /// read after the window does not count. Of connections that listen, all bytes over the length of the run.
    pub fn traffic_per_s(&self) -> [f64; 2] {
        let per_response = self.rate_per_s.achieved / self.response_count() as f64;
        let factor = match per_response.is_finite() && !self.listens() {
            true => per_response,
            // Without a response all bytes are of failures.
            false if self.duration_s > NO_LENGTH_S => self.duration_s.recip(),
            false => 0.0,
        };
        [self.bytes.read, self.bytes.written].map(|bytes| bytes as f64 * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::run_facts::RunFacts;
    use crate::series::RunSeries;

    #[test]
    fn a_run_of_no_length_has_no_rates() {
        let counts = Counts { requests: 3, ok: 3, responses_in_window: 3, bytes_in: 90, ..Counts::default() };
        let run = Run::of(RunFacts::default(), &counts, &[], &RunSeries::default(), Default::default());
        assert_eq!((run.rate_per_s.achieved, run.rate_per_s.offered, run.traffic_per_s()), (0.0, 0.0, [0.0, 0.0]));
    }
}

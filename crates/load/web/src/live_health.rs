//! Health of what generates the load, while it goes on: CPU time, lateness and clock of each part, and events of the
//! run.

use serde_json::{Value, json};

use weir_base::Nanos;
use weir_measure::LoadModel;
use weir_measure::RunProgress;
use weir_measure::agent_counts::AgentCounts;
use weir_measure::live_marks::{LiveEvent, LiveMark, LiveMarks};
use weir_measure::trust::Trust;

/// Health of what generates the load.
#[derive(Debug)]
pub(crate) struct LiveHealth {
    marks: LiveMarks,
    model: LoadModel,
    spins: bool,
    /// Parts at the last look: agents, or this process.
    parts: Vec<PartHealth>,
    /// Time of the last look.
    at: Nanos,
}

/// CPU, lateness and clock error of one agent, or of this process.
#[derive(Debug)]
struct PartHealth {
    node: String,
    threads: u64,
    cpu: Nanos,
    requests: u64,
    rate_per_s: f64,
    /// 50th and 99th percentile of lateness so far, in milliseconds.
    late_ms: [Option<f64>; 2],
    cpu_utilization: f64,
    start_offset_ms: f64,
    clock_error_ms: f64,
    /// Reason why its figures are in doubt.
    doubt: Option<String>,
}

impl LiveHealth {
    /// Health of a load of this model; `spins`: it busy-waits.
    pub(crate) fn new(marks: LiveMarks, model: LoadModel, spins: bool) -> Self {
        Self { marks, model, spins, parts: Vec::new(), at: Nanos::ZERO }
    }

    /// Looks at the progress of a run; returns the CPU time that the load has taken since the last look.
    ///
    /// After `until`, the end of the load, what is left of it comes in, which says nothing of the service under load.
    pub(crate) fn add(&mut self, progress: &RunProgress<'_>, until: Nanos) -> Nanos {
        let Some(interval) = progress.interval else { return Nanos::ZERO };
        self.marks.add(progress.number, interval, progress.parts, until);
        let seconds = (progress.elapsed - self.at).as_secs_f64();
        let of = |(index, part): (usize, &AgentCounts)| self.part(part, self.parts.get(index), seconds);
        let parts: Vec<PartHealth> = progress.parts.iter().enumerate().map(of).collect();
        let sum = |parts: &[PartHealth]| parts.iter().fold(Nanos::ZERO, |sum, part| sum + part.cpu);
        let taken = sum(&parts) - sum(&self.parts);
        (self.parts, self.at) = (parts, progress.elapsed);
        taken
    }

    fn part(&self, part: &AgentCounts, before: Option<&PartHealth>, seconds: f64) -> PartHealth {
        let counts = &part.counts;
        let requests = counts.ended();
        let new = requests.saturating_sub(before.map_or(0, |before| before.requests));
        let late_ms = [0.5, 0.99].map(|q| counts.lateness.quantile_ms(q));
        PartHealth {
            node: part.node.clone(),
            threads: part.threads,
            cpu: counts.cpu,
            requests,
            rate_per_s: if seconds > 0.0 { new as f64 / seconds } else { 0.0 },
            late_ms,
            cpu_utilization: counts.cpu_utilization,
            start_offset_ms: counts.began.as_millis_f64(),
            clock_error_ms: part.clock_error.as_millis_f64(),
            doubt: part
                .failure
                .clone()
                .or_else(|| Trust::doubt_so_far(std::slice::from_ref(part), self.model, self.spins)),
        }
    }

    /// Parts as a page reads them.
    pub(crate) fn parts(&self) -> Value {
        let of = |part: &PartHealth| {
            json!({
                "node": part.node,
                "threads": part.threads,
                "requests": part.requests,
                "rate": part.rate_per_s,
                "late_ms": part.late_ms,
                "cpu": part.cpu_utilization,
                "offset_ms": part.start_offset_ms,
                "clock_ms": part.clock_error_ms,
                "doubt": part.doubt,
            })
        };
        self.parts.iter().map(of).collect()
    }

    /// Events as a page reads them: time, whether it is for the worse, a word for a chart, and a sentence.
    pub(crate) fn marks(&self) -> Value {
        let of = |LiveMark { at, event }: &LiveMark| {
            let (is_bad, word, sentence) = match event {
                LiveEvent::Missed(slo, measured) => {
                    (true, format!("{slo} missed"), format!("{slo} is missed: {measured} in the last 10s"))
                }
                LiveEvent::Met(slo) => (false, format!("{slo} met"), format!("{slo} is met again")),
                LiveEvent::Doubted(why) => (true, "not trusted".to_owned(), format!("not trusted: {why}")),
                LiveEvent::Trusted => (false, "trusted".to_owned(), "trusted again".to_owned()),
            };
            json!([at.as_secs_f64(), is_bad, word, sentence])
        };
        self.marks.marks().iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::live_marks::own_counts;
    use weir_measure::recorder::Interval;

    #[test]
    fn the_time_and_rate_of_parts_are_those_since_the_last_look() {
        let marks = LiveMarks::new(&[], (LoadModel::Open, false), Nanos::SECOND, Nanos::ZERO);
        let mut health = LiveHealth::new(marks, LoadModel::Open, false);
        let mut parts = [own_counts(2), own_counts(1)];
        let interval = Interval::default();
        for number in 0..4 {
            for part in &mut parts {
                part.counts.cpu += Nanos::from_millis(100);
                part.counts.requests += 50;
            }
            let elapsed = Nanos::from_secs(number + 1);
            let progress =
                RunProgress { elapsed, number, interval: Some(&interval), parts: &parts, ..RunProgress::default() };
            assert_eq!(health.add(&progress, Nanos::NEVER), Nanos::from_millis(200));
        }
        assert_eq!(health.add(&RunProgress::default(), Nanos::NEVER), Nanos::ZERO);
        let shown = health.parts();
        assert_eq!((shown[0]["rate"].as_f64(), shown[1]["threads"].as_u64()), (Some(50.0), Some(1)), "{shown}");
    }
}

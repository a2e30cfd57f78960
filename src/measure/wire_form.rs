//! Wire format of counts between agents and coordinator. Decoding validates all values: invalid ones are rejected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counts::RunCounts;
use super::histogram::Histogram;
use super::recorder::{Interval, Totals};
use super::times::ResponseTimes;
use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;

/// Wire form of [`RunCounts`]. Histograms are HdrHistogram V2, base64; empty without values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireCounts {
    requests: u64,
    ok: u64,
    responses_in_window: u64,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<String, u64>,
    bytes_in: u64,
    body_in: u64,
    bytes_out: u64,
    good: WireTimes,
    bad: WireTimes,
    no_response: String,
    connect: String,
    lateness: String,
    waited: u64,
    body_length: Option<u64>,
    other_lengths: u64,
    area: f64,
    last_done_ns: u64,
    unfinished: u64,
    offered: u64,
    dropped: u64,
    max_backlog: u64,
    connections: u64,
    server: Option<String>,
    tls: Option<String>,
    details: BTreeMap<String, String>,
    cpu_ns: u64,
    cpu_utilization: f64,
    began_ns: u64,
}

/// Wire form of [`ResponseTimes`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct WireTimes {
    response: String,
    service: String,
    first_byte: String,
}

/// Wire form of [`Interval`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireInterval {
    ok: u64,
    failed: u64,
    responses: u64,
    bytes_in: u64,
    response: String,
    failed_response: String,
    backlog: u64,
    in_flight: u64,
    counts: Option<WireCounts>,
}

/// Maximum of a count: above any count of a run, and small enough that a million of them does not overflow.
const MAX_COUNT: u64 = 1 << 43;
/// Maximum length of a text from a peer, in characters; longer ones are cut.
const MAX_TEXT_CHARS: usize = 1000;

impl WireCounts {
    /// Wire form of counts.
    pub fn encode(counted: &RunCounts) -> Self {
        let totals = &counted.totals;
        let statuses = (0..).zip(totals.statuses.iter()).filter(|(_, n)| **n > 0).map(|(status, n)| (status, *n));
        let kinds = FailureKind::ALL.iter().map(|kind| (kind.name().to_owned(), totals.failed(*kind)));
        let details = counted.details.iter().map(|(kind, words)| (kind.name().to_owned(), truncated(words)));
        Self {
            requests: totals.requests,
            ok: totals.ok,
            responses_in_window: totals.responses_in_window,
            statuses: statuses.collect(),
            failures: kinds.filter(|(_, n)| *n > 0).collect(),
            bytes_in: totals.bytes_in,
            body_in: totals.body_in,
            bytes_out: totals.bytes_out,
            good: WireTimes::encode(&totals.good),
            bad: WireTimes::encode(&totals.bad),
            no_response: totals.no_response.to_base64(),
            connect: totals.connect.to_base64(),
            lateness: totals.lateness.to_base64(),
            waited: totals.waited,
            body_length: totals.body_length,
            other_lengths: totals.other_lengths,
            area: counted.area,
            last_done_ns: counted.last_done.0,
            unfinished: counted.unfinished,
            offered: counted.offered,
            dropped: counted.dropped,
            max_backlog: counted.max_backlog,
            connections: counted.connections,
            server: counted.server.as_deref().map(truncated),
            tls: counted.tls.as_deref().map(truncated),
            details: details.collect(),
            cpu_ns: counted.cpu.0,
            cpu_utilization: counted.cpu_utilization,
            began_ns: counted.began.0,
        }
    }

    /// Validated counts.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn decode(&self) -> Result<RunCounts, String> {
        let totals = self.totals()?;
        let counts = [self.unfinished, self.offered, self.dropped, self.max_backlog, self.connections, self.cpu_ns];
        check_counts(&counts)?;
        let figures_are_sane = self.area.is_finite() && (0.0..1e6).contains(&self.cpu_utilization);
        if !figures_are_sane {
            return Err("invalid figures".into());
        }
        let detail = |(name, words): (&String, &String)| Ok((parse_failure(name)?, truncated(words)));
        Ok(RunCounts {
            totals,
            area: self.area,
            last_done: Nanos(self.last_done_ns),
            unfinished: self.unfinished,
            offered: self.offered,
            dropped: self.dropped,
            max_backlog: self.max_backlog,
            connections: self.connections,
            server: self.server.as_deref().map(truncated),
            tls: self.tls.as_deref().map(truncated),
            details: self.details.iter().map(detail).collect::<Result<_, String>>()?,
            cpu: Nanos(self.cpu_ns),
            cpu_utilization: self.cpu_utilization,
            began: Nanos(self.began_ns),
        })
    }

    fn totals(&self) -> Result<Totals, String> {
        let mut totals = Totals {
            requests: self.requests,
            ok: self.ok,
            responses_in_window: self.responses_in_window,
            bytes_in: self.bytes_in,
            body_in: self.body_in,
            bytes_out: self.bytes_out,
            good: self.good.decode()?,
            bad: self.bad.decode()?,
            no_response: decode_histogram(&self.no_response, Histogram::precise)?,
            connect: decode_histogram(&self.connect, Histogram::precise)?,
            lateness: decode_histogram(&self.lateness, Histogram::precise)?,
            waited: self.waited,
            body_length: self.body_length,
            other_lengths: self.other_lengths,
            ..Totals::default()
        };
        for (status, n) in &self.statuses {
            let own = totals.statuses.get_mut(usize::from(*status));
            *own.ok_or_else(|| format!("invalid status {status}"))? = *n;
        }
        for (name, n) in &self.failures {
            totals.failures[parse_failure(name)? as usize] = *n;
        }
        check_counts(&[
            self.requests,
            self.responses_in_window,
            self.bytes_in,
            self.body_in,
            self.bytes_out,
            self.waited,
        ])?;
        let sum = |counts: &mut dyn Iterator<Item = &u64>| counts.fold(0, |sum: u64, n| sum.saturating_add(*n));
        let answers = totals.responses();
        let adds_up = sum(&mut self.statuses.values()) == answers
            && sum(&mut self.failures.values()).saturating_add(answers) == self.requests
            && self.ok == totals.good.count()
            && self.other_lengths <= answers
            && totals.no_response.count() == totals.no_response_count()
            && [&totals.good, &totals.bad].iter().all(|times| times.service.count() == times.count());
        if adds_up { Ok(totals) } else { Err("counts that do not add up".into()) }
    }
}

impl WireTimes {
    fn encode(times: &ResponseTimes) -> Self {
        let ResponseTimes { response, service, first_byte } = times;
        Self { response: response.to_base64(), service: service.to_base64(), first_byte: first_byte.to_base64() }
    }

    fn decode(&self) -> Result<ResponseTimes, String> {
        let open = |base64: &String| decode_histogram(base64, Histogram::precise);
        Ok(ResponseTimes {
            response: open(&self.response)?,
            service: open(&self.service)?,
            first_byte: open(&self.first_byte)?,
        })
    }
}

impl WireInterval {
    /// Wire form of an interval.
    pub fn encode(interval: &Interval) -> Self {
        Self {
            ok: interval.ok,
            failed: interval.failed,
            responses: interval.responses,
            bytes_in: interval.bytes_in,
            response: interval.response.to_base64(),
            failed_response: interval.failed_response.to_base64(),
            backlog: interval.backlog,
            in_flight: interval.in_flight,
            counts: interval.counts.as_deref().map(WireCounts::encode),
        }
    }

    /// Validated interval.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn decode(&self) -> Result<Interval, String> {
        check_counts(&[self.ok, self.failed, self.responses, self.bytes_in, self.backlog, self.in_flight])?;
        Ok(Interval {
            ok: self.ok,
            failed: self.failed,
            responses: self.responses,
            bytes_in: self.bytes_in,
            response: decode_histogram(&self.response, Histogram::coarse)?,
            failed_response: decode_histogram(&self.failed_response, Histogram::coarse)?,
            backlog: self.backlog,
            in_flight: self.in_flight,
            counts: self.counts.as_ref().map(WireCounts::decode).transpose()?.map(Box::new),
        })
    }
}

fn decode_histogram(base64: &str, empty: fn() -> Histogram) -> Result<Histogram, String> {
    let histogram = Histogram::from_base64(base64, empty)?;
    check_counts(&[histogram.count()])?;
    Ok(histogram)
}

fn check_counts(counts: &[u64]) -> Result<(), String> {
    match counts.iter().find(|n| **n > MAX_COUNT) {
        Some(n) => Err(format!("invalid count {n}")),
        None => Ok(()),
    }
}

fn parse_failure(name: &str) -> Result<FailureKind, String> {
    let known = FailureKind::ALL.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| format!("unknown failure '{}'", truncated(name)))
}

fn truncated(words: &str) -> String {
    words.chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Outcome, RequestEnd};
    use super::super::recorder::Recorder;
    use super::*;
    use proptest::prelude::*;

    fn outcome(ns: u64, end: RequestEnd) -> Outcome {
        Outcome {
            number: 0,
            intended: Nanos::ZERO,
            ready: Nanos::ZERO,
            sent: Nanos(ns / 3),
            first_byte: Nanos(ns / 2),
            done: Nanos(ns),
            connect: Nanos(ns / 7),
            end,
            bytes_in: 300,
            body_in: ns % 3,
            bytes_out: 90,
        }
    }

    fn recorder(times: &[(u64, usize)]) -> Recorder {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        for (ns, way) in times {
            let ends = [
                RequestEnd::Response(200),
                RequestEnd::Response(404),
                RequestEnd::Response(503),
                RequestEnd::Failed(FailureKind::Reset),
            ];
            recorder.record(&outcome(*ns, ends[way % 4]));
        }
        recorder
    }

    fn times() -> impl Strategy<Value = Vec<(u64, usize)>> {
        prop::collection::vec((1..10_000_000_000_u64, 0..4_usize), 0..200)
    }

    proptest! {
        // A case unpacks histograms of megabytes.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_is_packed_comes_out_as_it_was(times in times(), area in 0.0..1e15_f64, share in 0.0..1.0_f64) {
            let mut recorder = recorder(&times);
            let mut interval = std::mem::take(&mut recorder.interval);
            interval.counts = Some(Box::new(RunCounts {
                totals: recorder.take_totals(),
                area,
                cpu_utilization: share,
                last_done: Nanos(7),
                server: Some("nginx".into()),
                details: BTreeMap::from([(FailureKind::Reset, "gone".to_owned())]),
                ..RunCounts::default()
            }));
            let slip = WireInterval::encode(&interval);
            let text = serde_json::to_string(&slip).expect("it serialises");
            let back: WireInterval = serde_json::from_str(&text).expect("own text");
            let opened = back.decode().expect("own slip");
            prop_assert_eq!(WireInterval::encode(&opened), slip);
            prop_assert_eq!(opened.response.percentiles(), interval.response.percentiles());
            prop_assert_eq!(opened.failed_response.percentiles(), interval.failed_response.percentiles());
        }

        /// In however many parts, in whatever order of agents: the sum is that of one who saw all.
        #[test]
        fn parts_that_were_packed_add_up_to_the_whole(parts in prop::collection::vec(times(), 1..5)) {
            let mut sum = RunCounts::default();
            for part in &parts {
                let counted = RunCounts { totals: recorder(part).take_totals(), ..RunCounts::default() };
                sum.add(&WireCounts::encode(&counted).decode().expect("own parcel"));
            }
            let whole = recorder(&parts.concat()).take_totals();
            prop_assert_eq!(sum.totals.good.response.percentiles(), whole.good.response.percentiles());
            prop_assert_eq!(sum.totals.bad.service.percentiles(), whole.bad.service.percentiles());
            prop_assert_eq!(sum.totals.failed_response().percentiles(), whole.failed_response().percentiles());
            prop_assert_eq!(sum.totals.by_status(), whole.by_status());
            prop_assert_eq!(sum.totals.by_failure(), whole.by_failure());
            prop_assert_eq!((sum.totals.requests, sum.totals.ok), (whole.requests, whole.ok));
        }
    }

    #[test]
    fn what_nobody_can_have_counted_is_refused() {
        let mut recorder = recorder(&[(5, 0), (9, 3)]);
        let right = WireCounts::encode(&RunCounts { totals: recorder.take_totals(), ..RunCounts::default() });
        assert!(right.decode().is_ok());
        let wrong = [
            WireCounts { requests: 3, ..right.clone() },
            WireCounts { ok: 2, ..right.clone() },
            WireCounts { other_lengths: 2, ..right.clone() },
            WireCounts { bytes_in: u64::MAX, ..right.clone() },
            WireCounts { offered: u64::MAX, ..right.clone() },
            WireCounts { good: WireTimes::default(), ..right.clone() },
            WireCounts { bad: right.good.clone(), ..right.clone() },
            WireCounts { good: WireTimes { service: "?".into(), ..right.good.clone() }, ..right.clone() },
            WireCounts { no_response: String::new(), ..right.clone() },
            WireCounts { statuses: BTreeMap::from([(1000, 1)]), ..right.clone() },
            WireCounts { failures: BTreeMap::from([("bad luck".into(), 1)]), ..right.clone() },
            WireCounts { area: f64::INFINITY, ..right.clone() },
            WireCounts { cpu_utilization: -1.0, ..right.clone() },
        ];
        for parcel in wrong {
            assert!(parcel.decode().is_err(), "{parcel:?}");
        }
    }
}

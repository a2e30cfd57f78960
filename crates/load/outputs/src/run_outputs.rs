//! Outputs of a run: each interval goes to all receivers, without waiting for any.

use std::fs::File;
use std::sync::Arc;

use super::file_receiver::FileReceiver;
use super::http_output::{HttpFormat, HttpOutput};
use super::interval_sample::{IntervalFrame, IntervalSample, StepName};
use super::otlp_metrics::OtlpEncoder;
use super::output_encoder::{OutputEncoder, RunEnd};
use super::output_subject::OutputSubject;
use super::output_thread::{OutputAddress, OutputThread};
use super::pending_parts::DeliveryCounts;
use super::remote_write::RemoteWriteEncoder;
use super::scrape_address::ScrapeAddress;
use super::scrape_server::ScrapeServer;
use super::udp_receiver::UdpReceiver;
use weir_base::Nanos;
use weir_machine::clock;
use weir_machine::logger::Logger;
use weir_measure::RunProgress;
use weir_measure::recorder::Interval;
use weir_measure::run_script::{RunScript, ScriptMetric};
use weir_measure::run_steps::StepFacts;
use weir_pace::live_load::LevelKind;

/// Output of a run.
#[derive(Debug)]
pub enum OutputSpec {
    /// A file, by its name, that JSON lines are written to; and whether it is stdout.
    JsonLines(File, String, bool),
    /// Address at which Prometheus scrapes.
    Scrape(ScrapeAddress),
    /// A receiver that is reached by HTTP.
    Http(HttpOutput),
    /// Host and port of a StatsD server.
    Statsd(String),
}

/// Threads and servers that deliver the intervals of a run to its receivers.
#[derive(Debug)]
pub struct RunOutputs {
    subject: Arc<OutputSubject>,
    threads: Vec<OutputThread>,
    /// Index of the thread that writes JSON lines.
    file: Option<usize>,
    scrapes: Vec<ScrapeServer>,
    /// Start of the run, in nanoseconds since 1970, once it has started.
    start_unix_ns: Option<u64>,
    /// Time and number of the first interval of the run that goes on, of several one after the other.
    begun: (Nanos, u64),
    /// Number of the interval after the last one.
    next: u64,
    /// Number of intervals that were handed over.
    intervals: u64,
    /// End of the last one.
    last_end: Nanos,
    elapsed: Nanos,
    /// Sum of what belongs to no whole interval.
    rest: Option<Interval>,
    level: Option<(LevelKind, f64)>,
    step_names: Arc<[StepName]>,
    /// Metrics of a script's own so far.
    script: Arc<[ScriptMetric]>,
}

/// Delivery of a run's intervals to one of its receivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Name of the receiver, without credentials.
    pub receiver: String,
    /// Whether it is the file of JSON lines.
    pub is_file: bool,
    /// Intervals.
    pub counts: DeliveryCounts,
}

impl DeliveryReport {
    /// Losses in one line; `None` if all parts were delivered.
    pub fn loss(&self) -> Option<String> {
        let DeliveryCounts { intervals, lost, has_lost_other, reason } = &self.counts;
        let verb = if self.is_file { "written" } else { "delivered" };
        let reason = reason.as_deref().unwrap_or("unknown reason");
        let what = match (lost, has_lost_other) {
            (0, false) => return None,
            (0, true) => "the summary was".to_owned(),
            (lost, false) => format!("{lost} of {intervals} intervals were"),
            (lost, true) => format!("{lost} of {intervals} intervals and the summary were"),
        };
        Some(format!("{what} not {verb} to {}: {reason}", self.receiver))
    }
}

/// Difference up to which the clocks of agents may be ahead of this one's.
const MAX_CLOCK_ERROR: Nanos = Nanos::from_millis(20);

impl RunOutputs {
    /// Starts outputs; `logger` gets addresses of scrapes, and the first failure of each receiver.
    ///
    /// # Errors
    /// One line: an address or a header is not valid, or cannot be listened on.
    pub fn start(specs: Vec<OutputSpec>, subject: OutputSubject, logger: &Logger) -> Result<Self, String> {
        let subject = Arc::new(subject);
        let mut outputs = Self {
            subject: Arc::clone(&subject),
            threads: Vec::new(),
            file: None,
            scrapes: Vec::new(),
            start_unix_ns: None,
            begun: (Nanos::ZERO, 0),
            next: 0,
            intervals: 0,
            last_end: Nanos::ZERO,
            elapsed: Nanos::ZERO,
            rest: None,
            level: None,
            step_names: Arc::default(),
            script: Arc::default(),
        };
        for spec in specs {
            let subject = Arc::clone(&subject);
            let (name, address, encoder) = match spec {
                OutputSpec::Scrape(address) => {
                    let scrape = ScrapeServer::start(&address, subject, logger.clone())?;
                    logger.log(&format!("metrics at {}", scrape.url()));
                    outputs.scrapes.push(scrape);
                    continue;
                }
                OutputSpec::JsonLines(file, name, is_stdout) => {
                    outputs.file = Some(outputs.threads.len());
                    let receiver = FileReceiver::new(file, is_stdout);
                    (name, OutputAddress::File(receiver), OutputEncoder::JsonLines { subject, has_started: false })
                }
                OutputSpec::Http(output) => {
                    let encoder = match output.format {
                        HttpFormat::RemoteWrite => OutputEncoder::RemoteWrite(RemoteWriteEncoder::new(subject)),
                        HttpFormat::Otlp => OutputEncoder::Otlp(OtlpEncoder::new(subject)),
                        HttpFormat::Influx => OutputEncoder::Influx(subject),
                    };
                    (output.shown_url(), OutputAddress::Http(output.address()?, output.format), encoder)
                }
                OutputSpec::Statsd(address) => {
                    let receiver = UdpReceiver::new(address.clone());
                    (address, OutputAddress::Udp(receiver), OutputEncoder::Statsd(subject))
                }
            };
            let thread = OutputThread::start(name, address, encoder, logger.clone());
            outputs.threads.push(thread.map_err(|error| format!("the system has no thread for an output: {error}"))?);
        }
        Ok(outputs)
    }

    /// Begins another run, whose progress counts from its own start, at this time since the start of the first one.
    pub fn begin_run(&mut self, at: Nanos) {
        self.send_rest();
        let width = self.subject.interval.0.max(1);
        let number = at.max(self.last_end).0.div_ceil(width).max(self.next);
        self.begun = (Nanos(number.saturating_mul(width)), number);
    }

    /// Takes the progress of the run, the rate or number of users that is set, the steps that are known, and what a script
    /// has measured itself so far.
    pub fn update(
        &mut self,
        progress: &RunProgress<'_>,
        level: Option<(LevelKind, f64)>,
        steps: &dyn Fn() -> Vec<StepFacts>,
        script: Option<&RunScript>,
    ) {
        if let Some(script) = script {
            self.script = script.metrics.clone().into();
        }
        let progress = &RunProgress {
            elapsed: progress.elapsed + self.begun.0,
            number: progress.number + self.begun.1,
            ..*progress
        };
        self.elapsed = self.elapsed.max(progress.elapsed);
        if progress.elapsed > Nanos::ZERO && self.start_unix_ns.is_none() {
            let now = u64::try_from(clock::wall().0).unwrap_or(0);
            self.start_unix_ns = Some(now.saturating_sub(progress.elapsed.0));
        }
        self.level = level;
        let counts = progress.interval.or(progress.partial.map(|(_, counts)| counts));
        if counts.is_some_and(|counts| counts.steps.len() > self.step_names.len()) {
            self.step_names = match progress.named_steps {
                [] => StepName::of_facts(&steps()),
                named => StepName::of_facts(named),
            };
        }
        let interval = progress.interval.filter(|_| progress.number >= self.next);
        let start = Nanos(progress.number.saturating_mul(self.subject.interval.0)).max(self.last_end);
        let end = start + self.subject.interval;
        // If all threads have ended before its end, it is the last one, and belongs to the rest.
        match interval.filter(|_| progress.elapsed + MAX_CLOCK_ERROR >= end) {
            Some(interval) => {
                self.next = progress.number + 1;
                self.send(interval, (progress.number, start, end), false);
            }
            None => {
                let parts = progress.interval.into_iter().chain(progress.partial.map(|(_, partial)| partial));
                parts.for_each(|part| self.rest.get_or_insert_default().add(part));
            }
        }
    }

    fn send(&mut self, interval: &Interval, (number, start, end): (u64, Nanos, Nanos), is_rest: bool) {
        self.last_end = end;
        let end_unix_ns = self.start_unix_ns.unwrap_or(0).saturating_add(end.0);
        let frame = IntervalFrame { number, start, end, end_unix_ns, is_rest, level: self.level };
        let script = Arc::clone(&self.script);
        let sample = Arc::new(IntervalSample { script, ..IntervalSample::new(frame, interval, &self.step_names) });
        self.intervals += 1;
        self.threads.iter_mut().for_each(|thread| thread.send(&sample));
        self.scrapes.iter().for_each(|scrape| scrape.add(&sample));
    }

    /// Sends what belongs to no whole interval, if there is anything; it is behind the last one.
    fn send_rest(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        let events = rest.streams.as_ref().map_or(0, |streams| streams.events);
        if rest.ok + rest.failed + rest.iterations + events > 0 {
            self.send_last(&rest);
        }
    }

    fn send_last(&mut self, rest: &Interval) {
        let start = self.last_end;
        // Later than the last whole interval, also where its end was still to come.
        let end = self.elapsed.max(start + Nanos::MILLI);
        let number = self.next;
        self.next += 1;
        self.send(rest, (number, start, end), true);
    }

    /// Delivers what is left, and the result or why there is none; within a few seconds.
    pub fn finish(mut self, end: &RunEnd) -> Vec<DeliveryReport> {
        self.send_rest();
        // A run has one interval at least, so that it has a start.
        if self.intervals == 0 && !matches!(end, RunEnd::Failure(_)) {
            self.send_last(&Interval::default());
        }
        let Self { mut threads, scrapes, file, intervals, .. } = self;
        threads.iter_mut().for_each(|thread| thread.close(end.clone()));
        scrapes.into_iter().for_each(ScrapeServer::finish);
        let reports = threads.into_iter().enumerate().map(|(index, thread)| {
            let (receiver, counts) = thread.wait(intervals);
            DeliveryReport { receiver, is_file: file == Some(index), counts }
        });
        reports.collect()
    }
}

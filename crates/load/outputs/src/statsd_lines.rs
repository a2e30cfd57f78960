//! Intervals as StatsD's lines: counters of each interval, gauges of its percentiles.

use super::interval_sample::IntervalSample;
use super::output_subject::OutputSubject;
use super::time_counts::TimeCounts;
use weir_base::grpc_status::status_text;
use weir_pace::live_load::LevelKind;

/// Maximum size of a datagram, in bytes: an Ethernet frame without the headers of IPv6 and UDP.
const MAX_DATAGRAM_BYTES: usize = 1432;

/// Lines of an interval, each with its end of line.
pub(crate) fn lines(sample: &IntervalSample, subject: &OutputSubject) -> String {
    let tags = subject.labels.iter().map(|(name, value)| format!("{}:{}", word(name), word(value)));
    let tags = tags.collect::<Vec<_>>().join(",");
    let tags = if tags.is_empty() { tags } else { format!("|#{tags}") };
    let mut lines = Vec::new();
    let counter = |name: &str, n: u64| format!("weir.load.{name}:{n}|c{tags}\n");
    let gauge = |name: &str, value: f64| format!("weir.load.{name}:{value}|g{tags}\n");
    let times = |name: &str, times: &TimeCounts| {
        // Without a time there is no percentile; the gauge keeps its value.
        let all = times.figures_ms().into_iter().flatten();
        all.map(|(figure, ms)| gauge(&format!("{name}.{figure}"), ms)).collect::<Vec<_>>()
    };
    lines.push(counter("requests.ok", sample.ok));
    lines.push(counter("requests.failed", sample.failed));
    lines.push(counter("received_bytes", sample.bytes_in));
    lines.push(gauge("requests.in_flight", sample.in_flight as f64));
    lines.push(gauge("backlog", sample.backlog as f64));
    lines.extend(sample.frame.level.map(|(kind, level)| match kind {
        LevelKind::Rate => gauge("target.rate", level),
        LevelKind::Users => gauge("target.users", level),
    }));
    lines.extend(times("response", &sample.times));
    lines.extend(times("failed_response", &sample.failed_times));
    lines.extend(sample.statuses.iter().map(|(status, n)| counter(&format!("status.{}", status_text(*status)), *n)));
    lines.extend(sample.failures.iter().map(|(kind, n)| counter(&format!("failures.{kind}"), *n)));
    if !sample.steps.is_empty() {
        lines.push(counter("iterations", sample.iterations));
    }
    for (name, step) in sample.named_steps().filter(|(_, step)| step.requests > 0) {
        let path = format!("step.{}", word(&name.step));
        lines.push(counter(&format!("{path}.requests.ok"), step.requests.saturating_sub(step.failed)));
        lines.push(counter(&format!("{path}.requests.failed"), step.failed));
        lines.push(counter(&format!("{path}.failed_checks"), step.failed_checks));
        lines.extend(times(&format!("{path}.response"), &step.times));
    }
    if let Some(streams) = &sample.streams {
        lines.push(counter("stream.events", streams.events));
        lines.extend(times("stream.first_event", &streams.first));
        lines.extend(times("stream.gap", &streams.gaps));
    }
    for metric in sample.script.iter() {
        let path = format!("script.{}", word(&metric.name));
        lines.extend(metric.values.iter().map(|(name, value)| gauge(&format!("{path}.{}", figure(name)), *value)));
    }
    lines.concat()
}

/// Part of a name from that of a statistic: `p95` of `p(95)`.
fn figure(statistic: &str) -> String {
    word(&statistic.replace(['(', ')'], ""))
}

/// Lines in as few datagrams as they fit into, in order.
pub(crate) fn packed(lines: &str) -> Vec<Vec<u8>> {
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    for line in lines.split_inclusive('\n') {
        match datagrams.last_mut() {
            Some(last) if last.len() + line.len() <= MAX_DATAGRAM_BYTES => last.extend(line.as_bytes()),
            _ => datagrams.push(line.as_bytes().to_vec()),
        }
    }
    datagrams
}

/// Part of a name: what StatsD has a meaning for is an underscore.
fn word(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    text.chars().map(|c| if is_safe(c) { c } else { '_' }).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::{sample, subject};
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_counters_and_gauges() {
        let text = lines(&sample(0), &OutputSubject { labels: Vec::new(), ..subject() });
        for line in [
            "weir.load.requests.ok:10|c",
            "weir.load.requests.failed:2|c",
            "weir.load.requests.in_flight:3|g",
            "weir.load.target.rate:12|g",
            "weir.load.status.200:10|c",
            "weir.load.failures.timeout:2|c",
            "weir.load.step.log__in_.requests.ok:5|c",
            "weir.load.step.step_2.failed_checks:1|c",
            "weir.load.stream.events:7|c",
            "weir.load.script.pay_step_a_b_.p95:12.5|g",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(lines(&sample(0), &subject()).lines().all(|line| line.ends_with("|#run:a_b_c_d_e_")));
    }

    proptest! {
        #[test]
        fn datagrams_fit_and_have_all_lines(lengths in prop::collection::vec(1..400_usize, 0..40)) {
            let lines: String = lengths.iter().map(|n| "x".repeat(*n) + "\n").collect();
            let all = packed(&lines);
            prop_assert!(all.iter().all(|datagram| !datagram.is_empty() && datagram.len() <= MAX_DATAGRAM_BYTES));
            prop_assert!(all.iter().all(|datagram| datagram.ends_with(b"\n")));
            prop_assert_eq!(all.concat(), lines.into_bytes());
        }
    }
}

//! Intervals in InfluxDB's line protocol. Values are those of each interval, not sums.

use std::fmt::Write;
use weir_base::grpc_status::status_text;

use super::interval_sample::IntervalSample;
use super::output_subject::OutputSubject;
use super::time_counts::TimeCounts;
use weir_pace::live_load::LevelKind;

/// Lines of an interval, each with its end of line.
pub(crate) fn lines(sample: &IntervalSample, subject: &OutputSubject) -> String {
    let mut lines = InfluxLines { text: String::new(), subject, unix_ns: sample.frame.end_unix_ns };
    let mut fields = vec![
        ("requests", int(sample.ok + sample.failed)),
        ("ok", int(sample.ok)),
        ("failed", int(sample.failed)),
        ("rate", float(sample.rate_per_s())),
        ("bytes_in", int(sample.bytes_in)),
        ("in_flight", int(sample.in_flight)),
        ("backlog", int(sample.backlog)),
    ];
    if !sample.steps.is_empty() {
        fields.push(("iterations", int(sample.iterations)));
    }
    fields.extend(sample.frame.level.map(|(kind, level)| match kind {
        LevelKind::Rate => ("target_rate", float(level)),
        LevelKind::Users => ("target_users", float(level)),
    }));
    lines.push("weir_load", &[], fields, &[("", &sample.times), ("failed_", &sample.failed_times)]);
    for (status, n) in &sample.statuses {
        lines.push("weir_load_status", &[("status", &status_text(*status))], vec![("responses", int(*n))], &[]);
    }
    for (kind, n) in &sample.failures {
        lines.push("weir_load_failures", &[("kind", kind)], vec![("requests", int(*n))], &[]);
    }
    for (name, step) in sample.named_steps().filter(|(_, step)| step.requests > 0) {
        let fields = vec![
            ("requests", int(step.requests)),
            ("failed", int(step.failed)),
            ("failed_checks", int(step.failed_checks)),
        ];
        let tags = [("scenario", &*name.scenario), ("step", &*name.step)];
        lines.push("weir_load_step", &tags, fields, &[("", &step.times)]);
    }
    if let Some(streams) = &sample.streams {
        let times = [("first_event_", &streams.first), ("gap_", &streams.gaps)];
        lines.push("weir_load_stream", &[], vec![("events", int(streams.events))], &times);
    }
    for metric in sample.script.iter() {
        let fields = metric.values.iter().map(|(name, value)| (field_name(name), float(*value)));
        let fields = fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        lines.push_fields("weir_load_script", &[("metric", &*metric.name)], &fields);
    }
    lines.text
}

/// Name of a field from that of a statistic: `p95` of `p(95)`.
fn field_name(statistic: &str) -> String {
    statistic.chars().filter(|c| !matches!(c, '(' | ')')).map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

struct InfluxLines<'a> {
    text: String,
    subject: &'a OutputSubject,
    unix_ns: u64,
}

impl InfluxLines<'_> {
    /// Adds a line; of times it has mean, percentiles and maximum, by names with a prefix.
    fn push(
        &mut self,
        measurement: &str,
        tags: &[(&str, &str)],
        fields: Vec<(&'static str, String)>,
        times: &[(&str, &TimeCounts)],
    ) {
        let mut fields: Vec<String> = fields.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        for (prefix, times) in times {
            let figures = times.figures_ms().into_iter().flatten();
            fields.extend(figures.map(|(name, ms)| format!("{prefix}{name}_ms={}", float(ms))));
        }
        self.push_fields(measurement, tags, &fields);
    }

    /// Adds a line of fields with their values; none without a field.
    fn push_fields(&mut self, measurement: &str, tags: &[(&str, &str)], fields: &[String]) {
        if fields.is_empty() {
            return;
        }
        let common = self.subject.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let all = common.chain(tags.iter().copied()).filter(|(_, value)| !value.is_empty());
        let tags: String = all.map(|(name, value)| format!(",{}={}", escaped(name), escaped(value))).collect();
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{measurement}{tags} {} {}", fields.join(","), self.unix_ns);
    }
}

fn int(n: u64) -> String {
    // Integers have a sign.
    format!("{}i", n.min(i64::MAX as u64))
}

fn float(number: f64) -> String {
    format!("{}", if number.is_finite() { number } else { 0.0 })
}

/// Name or value of a tag. A backslash at the end would take its meaning from what follows, and cannot be escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ',' | '=' | ' ' => escaped.extend(['\\', c]),
            '\\' => escaped.push('/'),
            c if c.is_control() => escaped.push('_'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::{sample, subject};
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_a_line_for_each_of_its_parts() {
        let text = lines(&sample(0), &subject());
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all.len(), 8, "{text}");
        let labels = r#"run=a\ b\,c\=d"e/"#;
        let first = format!("weir_load,{labels} requests=12i,ok=10i,failed=2i,rate=12,bytes_in=1000i,in_flight=3i,");
        assert!(all[0].starts_with(&first) && all[0].ends_with(" 1700000001000000000"), "{text}");
        assert!(all[0].contains(",target_rate=12,mean_ms=5.5") && all[0].contains(",failed_p99_ms=1"), "{text}");
        assert_eq!(all[1], format!("weir_load_status,{labels},status=200 responses=10i 1700000001000000000"));
        assert!(all[3].starts_with(&format!(r#"weir_load_step,{labels},scenario=shop,step=log\ "in" requests=6i,"#)));
        assert!(all[4].starts_with(&format!(r"weir_load_step,{labels},step=step\ 2 requests=6i,")), "{text}");
        assert!(all[5].contains(" events=7i,first_event_mean_ms="), "{text}");
        let script = format!(r"weir_load_script,{labels},metric=pay{{step:a\ b}} avg=10,p95=12.5 1700000001000000000");
        assert_eq!(all[7], script);
    }

    proptest! {
        /// Oracle: a reader of the protocol, which takes a separator behind a backslash as text.
        #[test]
        fn a_tag_is_read_as_one(text in "[a ,=\\\\\n\"é]{1,12}") {
            let read = format!("{} x=1i", escaped(&text));
            let mut chars = read.chars();
            let mut tag = String::new();
            while let Some(c) = chars.next() {
                match c {
                    '\\' => tag.extend(chars.next()),
                    ' ' | ',' | '=' => break,
                    c => tag.push(c),
                }
            }
            prop_assert_eq!(tag, text.replace('\\', "/").replace('\n', "_"));
            prop_assert_eq!(chars.as_str(), "x=1i");
        }
    }
}

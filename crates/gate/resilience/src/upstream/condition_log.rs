//! Log of the conditions of hosts and circuits: which changes are lines.
//!
//! A host that flaps must not flood a log. So each subject has ten lines, and then one per half a minute. Changes that
//! are left out are counted; the next line has their number and the condition that they ended in, so a log is never
//! older than half a minute.

use std::collections::BTreeMap;

use weir_base::Nanos;

/// Lines of a subject at once.
const BURST: u32 = 10;

/// Time in which a subject gets another line.
const REFILL: Nanos = Nanos::from_secs(30);

/// Maximum number of subjects that are remembered.
const MAX_SUBJECTS: usize = 4096;

/// Choice of condition changes that are logged. A subject is a host of an upstream, or an upstream.
#[derive(Clone, Debug, Default)]
pub struct ConditionLog {
    /// By kind of change and subject: a circuit that flaps leaves out no line about hosts.
    subjects: BTreeMap<(&'static str, String), SubjectLines>,
}

#[derive(Clone, Debug)]
struct SubjectLines {
    /// Lines that it may have now, as of `counted_at`.
    lines: u32,
    counted_at: Nanos,
    omitted: u64,
    /// The latest change, if it was left out.
    latest: String,
}

impl SubjectLines {
    fn refill(&mut self, now: Nanos) {
        let more = (now - self.counted_at).0 / REFILL.0;
        self.lines = u32::try_from(u64::from(self.lines) + more).unwrap_or(BURST).min(BURST);
        self.counted_at += Nanos(more * REFILL.0);
        if self.lines == BURST {
            self.counted_at = now;
        }
    }

    /// The line of a change, and the number of those that were left out before it.
    fn line(&mut self, subject: &str, change: &str) -> String {
        self.lines -= 1;
        let omitted = std::mem::take(&mut self.omitted);
        self.latest.clear();
        match omitted {
            0 => format!("{subject}{change}"),
            1 => format!("{subject}{change} (1 change before this one is not logged)"),
            _ => format!("{subject}{change} ({omitted} changes before this one are not logged)"),
        }
    }
}

impl ConditionLog {
    /// The line of a change of a subject, whose name ends with what separates it from the change; None if it is left
    /// out for now.
    pub fn changed(&mut self, now: Nanos, kind: &'static str, subject: &str, change: &str) -> Option<String> {
        let key = (kind, subject.to_owned());
        if !self.subjects.contains_key(&key) && self.subjects.len() >= MAX_SUBJECTS {
            self.forget_quiet(now);
        }
        if !self.subjects.contains_key(&key) && self.subjects.len() >= MAX_SUBJECTS {
            return None;
        }
        let fresh = || SubjectLines { lines: BURST, counted_at: now, omitted: 0, latest: String::new() };
        let lines = self.subjects.entry(key).or_insert_with(fresh);
        lines.refill(now);
        if lines.lines > 0 {
            return Some(lines.line(subject, change));
        }
        lines.omitted += 1;
        change.clone_into(&mut lines.latest);
        None
    }

    /// Lines of the latest changes that were left out, of subjects that may have a line now.
    pub fn due(&mut self, now: Nanos) -> Vec<String> {
        let mut due = Vec::new();
        for ((_, subject), lines) in self.subjects.iter_mut().filter(|(_, lines)| lines.omitted > 0) {
            lines.refill(now);
            if lines.lines > 0 {
                // The latest of those left out is the line itself.
                lines.omitted -= 1;
                let latest = std::mem::take(&mut lines.latest);
                due.push(lines.line(subject, &latest));
            }
        }
        due
    }

    /// Time of the next line of [`Self::due`]; [`Nanos::NEVER`] if nothing was left out.
    pub fn next_due(&self) -> Nanos {
        let waiting = self.subjects.values().filter(|lines| lines.omitted > 0);
        waiting.map(|lines| lines.counted_at + REFILL).min().unwrap_or(Nanos::NEVER)
    }

    /// Forgets subjects that have all of their lines.
    fn forget_quiet(&mut self, now: Nanos) {
        self.subjects.retain(|_, lines| {
            lines.refill(now);
            lines.lines < BURST
        });
    }
}

/// Maximum number of hosts that a line names.
const MAX_NAMED_HOSTS: usize = 8;

/// Line of a change of an upstream's hosts, which `by` has made (`by DNS`); None if there is none.
pub fn hosts_line(added: &[String], removed: &[String], total: usize, by: &str) -> Option<String> {
    let list = |what: &str, hosts: &[String]| {
        let named = hosts.get(..MAX_NAMED_HOSTS).unwrap_or(hosts).join(", ");
        let more = hosts.len().saturating_sub(MAX_NAMED_HOSTS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!hosts.is_empty()).then(|| format!("{what} {by}: {named}{more}"))
    };
    let all: Vec<String> = list("added", added).into_iter().chain(list("removed", removed)).collect();
    let hosts = if total == 1 { "host" } else { "hosts" };
    (!all.is_empty()).then(|| format!("{}; {total} {hosts}", all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_host_that_flaps_has_ten_lines_and_then_one_per_half_a_minute_with_the_number_left_out() {
        let mut log = ConditionLog::default();
        let at = |ms: u64| Nanos::from_millis(ms);
        let lines: Vec<_> =
            (0..100).filter_map(|n| log.changed(at(n), "host", "up a: ", &format!("change {n}"))).collect();
        assert_eq!((lines.len(), lines[9].as_str()), (10, "up a: change 9"));
        for (kind, subject) in [("host", "up b: "), ("circuit", "up a: ")] {
            let line = log.changed(at(1), kind, subject, "healthy");
            assert_eq!(line, Some(format!("{subject}healthy")), "others are not concerned");
        }
        assert_eq!(log.next_due(), at(30_000));
        assert!(log.due(at(29_999)).is_empty());
        assert_eq!(log.due(at(30_000)), ["up a: change 99 (89 changes before this one are not logged)"]);
        assert_eq!(log.next_due(), Nanos::NEVER);
        assert!([31_000, 32_000].iter().all(|ms| log.changed(at(*ms), "host", "up a: ", "x").is_none()));
        let next = log.changed(at(60_000), "host", "up a: ", "z");
        assert_eq!(next.as_deref(), Some("up a: z (2 changes before this one are not logged)"));
    }

    #[test]
    fn hosts_that_come_and_go_are_named() {
        let hosts = |count: usize| -> Vec<String> { (0..count).map(|n| format!("h{n}:80")).collect() };
        assert_eq!(hosts_line(&[], &[], 3, "by DNS"), None);
        let line = hosts_line(&hosts(2), &hosts(10), 3, "by DNS").unwrap_or_default();
        let removed = "h0:80, h1:80, h2:80, h3:80, h4:80, h5:80, h6:80, h7:80 and 2 more";
        assert_eq!(line, format!("added by DNS: h0:80, h1:80; removed by DNS: {removed}; 3 hosts"));
    }

    #[test]
    fn subjects_without_end_take_no_more_memory() {
        let mut log = ConditionLog::default();
        for n in 0..100_000_u64 {
            log.changed(Nanos::from_secs(n), "host", &format!("{n}"), "new");
        }
        assert!(log.subjects.len() <= MAX_SUBJECTS);
    }

    proptest! {
        #[test]
        fn every_change_is_a_line_or_counted_in_one(steps in prop::collection::vec((0_u64..20_000, 0_u8..3), 1..300)) {
            let mut log = ConditionLog::default();
            let (mut now, mut changes, mut lines, mut counted) = (Nanos::ZERO, 0_u64, 0_u64, 0_u64);
            let omitted = |line: &str| line.split_once(" (").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or(0_u64);
            for (wait, kind) in steps {
                now += Nanos::from_millis(wait);
                let printed = if kind == 0 {
                    log.due(now)
                } else {
                    changes += 1;
                    log.changed(now, "host", "a: ", "changed").into_iter().collect()
                };
                lines += printed.len() as u64;
                counted += printed.iter().map(|line| omitted(line)).sum::<u64>();
                prop_assert!(lines <= 10 + now.0 / REFILL.0);
            }
            let end = log.due(now + REFILL);
            lines += end.len() as u64;
            counted += end.iter().map(|line| omitted(line)).sum::<u64>();
            prop_assert_eq!(lines + counted, changes);
        }
    }
}

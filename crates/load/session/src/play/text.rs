//! Requests and responses of steps as text.

use weir_base::Nanos;
use weir_base::terminal_text::{beginning, lines, single_line};
use weir_load::steps::StepTrace;
use weir_request::secret_mask::SecretMask;

use super::play_output::{PlayDetail, PlayTotals};

/// Maximum size of the part of a body that is printed, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 2 << 10;

/// Printer of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceText {
    detail: PlayDetail,
    has_colors: bool,
}

const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";
const BOLD: &str = "1";
const DIM: &str = "2";

impl TraceText {
    pub(super) fn new(detail: PlayDetail, has_colors: bool) -> Self {
        Self { detail, has_colors }
    }

    /// Request and response of a step, and what was found.
    pub(super) fn step(self, step: &StepTrace, mask: &SecretMask) -> String {
        let shown = |text: &str| lines(&mask.text(text)).into_owned();
        let is_whole = self.detail != PlayDetail::Short || matches!(step.verdict, "failed" | "retried");
        let mut text = format!("{}  {}\n", self.paint(BOLD, &shown(&step.step)), self.paint(DIM, &shown(&step.origin)));
        if !step.request.is_empty() {
            let (mut head, body) = split(&step.request);
            if step.head.starts_with(b"HTTP/2") {
                // Requests are kept as text of HTTP/1.1.
                head = head.replacen(" HTTP/1.1\r\n", " HTTP/2\r\n", 1);
            }
            self.push_message("> ", CYAN, &head, body, is_whole, mask, &mut text);
            if step.head.is_empty() {
                text.push_str("< no response\n");
            } else {
                let head = String::from_utf8_lossy(&step.head);
                self.push_message("< ", GREEN, &head, &step.body, is_whole, mask, &mut text);
                if is_whole && step.raw_body_bytes > 0 && step.raw_body_bytes != step.body.len() {
                    let (raw, size) = (step.raw_body_bytes, step.body.len());
                    text.push_str(&self.paint(DIM, &format!("({size} bytes, compressed to {raw})\n")));
                }
            }
        }
        for capture in &step.captures {
            text.push_str(&format!("  {} = {}\n", capture.name, lines(&mask.header(&capture.name, &capture.json))));
        }
        for check in &step.checks {
            let written = shown(&check.text);
            match &check.failure {
                None => text.push_str(&format!("  {} {written}\n", self.paint(GREEN, "✓"))),
                Some(failure) => {
                    text.push_str(&format!("  {} {written}\n", self.paint(RED, "✗")));
                    text.push_str(&format!("      expected  {}\n", shown(&failure.expected)));
                    text.push_str(&format!("      found     {}\n", shown(&failure.actual)));
                }
            }
        }
        for failure in &step.failures {
            text.push_str(&format!("  {} {}\n", self.paint(RED, "✗"), shown(failure)));
        }
        let color = if step.verdict == "failed" { RED } else { DIM };
        let verdict = match step.request.is_empty() {
            true => format!("{}: not sent", step.verdict),
            false => format!("{} in {}", step.verdict, Nanos(step.service.0 / 1000 * 1000)),
        };
        text.push_str(&format!("  {}\n\n", self.paint(color, &verdict)));
        text
    }

    /// Last line: counts.
    pub(super) fn totals(self, totals: PlayTotals, is_ok: bool) -> String {
        let PlayTotals { steps, failed_steps, requests, passed_checks, failed_checks } = totals;
        if !is_ok && steps == 0 && requests == 0 {
            return format!("{}: before the first request\n", self.paint(RED, "failed"));
        }
        let word = if is_ok { self.paint(GREEN, "passed") } else { self.paint(RED, "failed") };
        let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let failed = |count: u64| if count > 0 { format!(" ({count} failed)") } else { String::new() };
        format!(
            "{word}: {}{}, {}, {}{}\n",
            plural(steps, "step"),
            failed(failed_steps),
            plural(requests, "request"),
            plural(passed_checks + failed_checks, "check"),
            failed(failed_checks)
        )
    }

    #[expect(clippy::too_many_arguments, reason = "parts of one message")]
    fn push_message(
        self,
        prefix: &str,
        color: &str,
        head: &str,
        body: &[u8],
        is_whole: bool,
        mask: &SecretMask,
        text: &mut String,
    ) {
        let prefix = self.paint(color, prefix);
        for line in mask.head(head).lines().take(if is_whole { usize::MAX } else { 1 }) {
            text.push_str(&format!("{prefix}{}\n", single_line(line)));
        }
        if is_whole && !body.is_empty() {
            self.push_body(body, mask, text);
        }
    }

    fn push_body(self, body: &[u8], mask: &SecretMask, text: &mut String) {
        let limit = if self.detail == PlayDetail::Whole { usize::MAX } else { MAX_SHOWN_BODY_BYTES };
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        match std::str::from_utf8(body).ok().filter(|text| text.chars().all(is_text)) {
            Some(readable) => {
                // Cut after the secrets are out: a half of one would pass.
                let readable = mask.text(readable);
                let start = beginning(&readable, limit);
                text.push_str(lines(start).trim_end());
                if start.len() < readable.len() {
                    let cut = format!("\n... ({} bytes in all; -v prints them)", body.len());
                    text.push_str(&self.paint(DIM, &cut));
                }
            }
            None => text.push_str(&self.paint(DIM, &format!("({} bytes, not text)", body.len()))),
        }
        text.push('\n');
    }

    fn paint(self, code: &str, words: &str) -> String {
        if self.has_colors && !words.is_empty() { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }
}

/// Head and body of a request.
pub(super) fn split(request: &[u8]) -> (String, &[u8]) {
    let end = request.windows(4).position(|window| window == b"\r\n\r\n").map_or(request.len(), |at| at + 4);
    (String::from_utf8_lossy(&request[..end]).into_owned(), &request[end..])
}

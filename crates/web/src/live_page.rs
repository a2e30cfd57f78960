//! Page of a run: a server on a thread of its own, which takes progress and gives changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::access::{AccessRules, new_token};
use super::live_bin::LiveBin;
use super::live_service::LiveService;
use super::live_shared::{LiveShared, PageSubject};
use super::web_address::WebAddress;
use weir_load::LoadControl;
use weir_machine::lock::lock;
use weir_measure::{Run, RunProgress};
use weir_report::page::{self, Tone};
use weir_server::{BuiltinPaths, Logger, Options, RunningServer, ServerError};

/// Page of a run.
#[derive(Debug)]
pub struct LivePage {
    shared: Arc<LiveShared>,
    server: RunningServer,
}

/// Shortest token that a user may choose, in characters.
const MIN_TOKEN_CHARS: usize = 16;
/// Time that pages have to read the end of the run.
const END_GRACE: Duration = Duration::from_secs(2);

impl LivePage {
    /// Starts the page. Without an address it listens on the default one, or on another port if that is taken.
    ///
    /// # Errors
    /// One line: an address that cannot be listened on, or is not of this machine alone without a token.
    pub fn start(
        address: Option<&WebAddress>,
        token: Option<&str>,
        subject: PageSubject,
        control: LoadControl,
        logger: &Logger,
    ) -> Result<Self, String> {
        let default = || WebAddress { host: "127.0.0.1".to_owned(), port: 8089 };
        let at = address.cloned().unwrap_or_else(default);
        check_token(&at, token)?;
        let random = || new_token().ok_or("--web: the system has no random numbers for a token");
        let operator_token = token.map_or_else(random, |token| Ok(token.to_owned()))?;
        let rules = AccessRules {
            operator_token,
            spectator_token: random()?,
            host_names: vec![at.host.clone(), weir_load::machine_manifest().hostname],
        };
        let shared = Arc::new(LiveShared {
            rules,
            control,
            subject,
            run: random()?,
            store: Mutex::default(),
            end: Mutex::default(),
            ticks: AtomicU64::new(0),
            wakes: watch::Sender::new(0),
        });
        let start = |port| {
            let options = Options {
                host: at.host.clone(),
                port,
                builtin_paths: BuiltinPaths { metrics: String::new(), health: String::new() },
                logger: logger.clone(),
                ..Options::default()
            };
            weir_server::start(LiveService(Arc::clone(&shared)), &options)
        };
        let started = match start(at.port) {
            Err(ServerError::Listen(..)) if address.is_none() => start(0),
            other => other,
        };
        let server = started.map_err(|error| format!("--web: {error}"))?;
        Ok(Self { shared, server })
    }

    /// Addresses of those who may change the load, and of those who may only read.
    pub fn urls(&self) -> [String; 2] {
        let rules = &self.shared.rules;
        let address = self.server.address();
        let url = match address.ip().is_unspecified() {
            true => format!("http://{}:{}", weir_load::machine_manifest().hostname, address.port()),
            false => self.server.url(),
        };
        [&rules.operator_token, &rules.spectator_token].map(|token| format!("{url}/#{token}"))
    }

    /// Takes the progress of the run.
    pub fn update(&self, progress: &RunProgress<'_>) {
        if let Some(interval) = progress.interval {
            lock(&self.shared.store).add(LiveBin::of(progress.number, interval));
            self.shared.ticks.fetch_add(1, Ordering::Relaxed);
            self.shared.wake();
        }
    }

    /// Shows the end of the run, and stops.
    pub fn finish(self, run: Result<&Run, &str>) {
        *lock(&self.shared.end) = Some(match run {
            Ok(run) => end_of(run),
            Err(why) => json!({ "tone": "bad", "headline": "The run has failed", "sentence": why, "points": [] }),
        });
        self.shared.wake();
        self.server.stop(END_GRACE);
    }
}

/// Verdict on a run, its figures and its report.
fn end_of(run: &Run) -> Value {
    let report = page::of_run(run);
    let tone = |tone: Tone| match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Doubt => "doubt",
    };
    let point = |point: &page::VerdictPoint| json!({ "tone": tone(point.tone), "text": point.text });
    let figure = |figure: &page::KeyFigure| json!([figure.name, figure.unit.format(figure.value), figure.note]);
    json!({
        "tone": tone(report.verdict.tone),
        "headline": report.verdict.headline,
        "sentence": report.verdict.sentence,
        "points": report.verdict.points.iter().map(point).collect::<Vec<_>>(),
        "figures": report.key_figures.iter().map(figure).collect::<Vec<_>>(),
        "ended_s": run.series.last().map(|point| point.t_s + point.width_s),
        "stages": run.changes.as_ref().map(|changes| &changes.stages),
        "report": page::render(&report),
    })
}

fn check_token(at: &WebAddress, token: Option<&str>) -> Result<(), String> {
    match token {
        None if !at.is_loopback() => Err(format!(
            "--web: {} is reached from other machines; give a token of your own with --web-token TOKEN",
            at.host
        )),
        Some(token) if token.len() < MIN_TOKEN_CHARS => {
            Err(format!("--web-token: the token is too short; write {MIN_TOKEN_CHARS} characters or more"))
        }
        Some(token) if !token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) => {
            Err("--web-token: the token has other characters than letters, digits and -._~".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_other_machines_needs_a_token_that_is_no_word() {
        let at = |text: &str| text.parse::<WebAddress>().expect("an address");
        assert_eq!(check_token(&at("127.0.0.1:1"), None), Ok(()));
        assert!(check_token(&at("0.0.0.0:1"), None).is_err_and(|why| why.contains("--web-token")));
        assert_eq!(check_token(&at("0.0.0.0:1"), Some("0123456789abcdef")), Ok(()));
        for wrong in ["", "secret", "0123456789abcde", "0123456789 abcdef", "0123456789abcdef#"] {
            assert!(check_token(&at("127.0.0.1:1"), Some(wrong)).is_err(), "{wrong}");
        }
    }
}

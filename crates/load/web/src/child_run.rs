//! Runs that the page has started: each is a process of its own, one at a time.
//!
//! The process is `weir load --web`, so a run is the one of the command line that the page shows, and neither can take
//! the other down. It ends, and saves what it has, when its stdin is closed: also if this process is killed.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::access::WebRole;
use super::ui_backend::{RunCommand, UiBackend};
use weir_machine::clock;
use weir_machine::lock::lock;

/// Messages that are kept of a run, and the length of each in characters.
const MAX_MESSAGES: usize = 50;
const MAX_MESSAGE_CHARS: usize = 2000;

/// State of the run that was started last.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunState {
    /// Number of the run since the start of this process; 0: there was none.
    pub(crate) number: u64,
    /// Whether the process is there.
    pub(crate) is_running: bool,
    /// Page of the run, once it has one.
    pub(crate) page: Option<ChildPage>,
    command: String,
    /// Errors and warnings.
    messages: Vec<String>,
    code: Option<i32>,
    /// Number of the saved run.
    saved: Option<i64>,
}

/// Page of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildPage {
    /// Address and port.
    pub(crate) address: String,
    operator_token: String,
    spectator_token: String,
}

/// Runs that the page has started.
#[derive(Debug, Default)]
pub(crate) struct ChildRuns {
    states: watch::Sender<RunState>,
    process: Mutex<Option<RunProcess>>,
}

#[derive(Debug)]
struct RunProcess {
    child: Arc<Mutex<Child>>,
    stdin: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

/// Message of a process, a line of JSON.
#[derive(Deserialize)]
struct ChildMessage {
    level: String,
    message: String,
}

impl RunState {
    /// State as a page reads it.
    pub(crate) fn json(&self) -> Value {
        let state = match () {
            () if self.number == 0 => "none",
            () if !self.is_running => "ended",
            () if self.page.is_some() => "running",
            () => "starting",
        };
        json!({
            "number": self.number,
            "state": state,
            "command": self.command,
            "messages": self.messages,
            "code": self.code,
            "saved": self.saved,
        })
    }

    fn take(&mut self, line: &str) {
        let message = match serde_json::from_str(line) {
            Ok(message) => message,
            // Of another program, such as the interpreter of a script.
            Err(_) => ChildMessage { level: "error".to_owned(), message: line.to_owned() },
        };
        let page = ChildPage::named_in(&message.message).filter(|_| message.level == "note" && self.page.is_none());
        if let Some(page) = page {
            self.page = Some(page);
        } else if message.level == "error" || message.message.starts_with("warning: ") {
            self.messages.push(message.message.chars().take(MAX_MESSAGE_CHARS).collect());
            let surplus = self.messages.len().saturating_sub(MAX_MESSAGES);
            self.messages.drain(..surplus);
        }
    }
}

impl ChildPage {
    /// Page that a message names: both of its addresses.
    fn named_in(message: &str) -> Option<Self> {
        let addresses = message.strip_prefix("live page ")?;
        let mut urls = addresses.split([' ', ')']).filter_map(|word| word.strip_prefix("http://")?.split_once("/#"));
        let (address, operator_token) = urls.next()?;
        let (_, spectator_token) = urls.next()?;
        Some(Self {
            address: address.to_owned(),
            operator_token: operator_token.to_owned(),
            spectator_token: spectator_token.to_owned(),
        })
    }

    /// Token that has a role.
    pub(crate) fn token(&self, role: WebRole) -> &str {
        match role {
            WebRole::Operator => &self.operator_token,
            WebRole::Spectator => &self.spectator_token,
        }
    }
}

impl ChildRuns {
    /// State of the last run, and its changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<RunState> {
        self.states.subscribe()
    }

    /// State of the last run.
    pub(crate) fn state(&self) -> RunState {
        self.states.borrow().clone()
    }

    /// Starts a run; returns its number. Two at a time would measure each other.
    ///
    /// # Errors
    /// One line: a run is going on, or the process cannot be started.
    pub(crate) fn start(self: &Arc<Self>, command: RunCommand, backend: &Arc<dyn UiBackend>) -> Result<u64, String> {
        let mut process = lock(&self.process);
        if self.states.borrow().is_running {
            return Err("a run is going on; stop it, or wait for its end".to_owned());
        }
        let mut words = command.words.iter();
        let program = words.next().ok_or("no program")?;
        let started = clock::unix_s();
        let mut child = Command::new(program)
            .args(words)
            .envs(command.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C in the terminal of this process is not for the run, which ends with its stdin.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let number = self.states.borrow().number + 1;
        self.states.send_replace(RunState { number, is_running: true, command: command.shown, ..RunState::default() });
        let child = Arc::new(Mutex::new(child));
        let (runs, backend, own) = (Arc::clone(self), Arc::clone(backend), Arc::clone(&child));
        let reader = thread::Builder::new().name("weir-ui-run".to_owned()).spawn(move || {
            let lines = stderr.map(BufReader::new).into_iter().flat_map(|stderr| stderr.split(b'\n'));
            for line in lines.map_while(Result::ok) {
                runs.states.send_modify(|state| state.take(&String::from_utf8_lossy(&line)));
            }
            let code = lock(&own).wait().ok().and_then(|status| status.code());
            let saved = backend.saved_since(started);
            runs.states.send_modify(|state| {
                (state.is_running, state.page, state.code, state.saved) = (false, None, code, saved);
            });
        });
        let reader = reader.map_err(|error| {
            let _ = lock(&child).kill();
            self.states.send_modify(|state| state.is_running = false);
            format!("the system has no thread for the run: {error}")
        })?;
        *process = Some(RunProcess { child, stdin, reader: Some(reader) });
        Ok(number)
    }

    /// Lets a run end, and save what it has.
    pub(crate) fn end(&self) {
        if let Some(process) = lock(&self.process).as_mut() {
            process.stdin = None;
        }
    }

    /// Ends the run at once; what it has is lost.
    pub(crate) fn kill(&self) {
        let child = lock(&self.process).as_ref().map(|process| Arc::clone(&process.child));
        if let Some(child) = child {
            let _ = lock(&child).kill();
        }
    }

    /// Waits until the last run has ended.
    pub(crate) fn join(&self) {
        // The process stays, so that another thread can kill it meanwhile.
        let reader = lock(&self.process).as_mut().and_then(|process| process.reader.take());
        if let Some(reader) = reader {
            let _ = reader.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_process_are_its_page_its_errors_and_warnings() {
        let mut state = RunState { number: 1, is_running: true, ..RunState::default() };
        let lines = [
            r#"{"level":"note","message":"1.0s 50/s"}"#,
            r#"{"level":"note","message":"warning: no think time"}"#,
            r#"{"level":"note","message":"live page http://127.0.0.1:40123/#abc-_9 (to watch only: http://127.0.0.1:40123/#def)"}"#,
            r#"{"level":"error","message":"live page http://127.0.0.1:1/#x (to watch only: http://127.0.0.1:1/#y)"}"#,
            "Traceback (most recent call last):",
        ];
        lines.iter().for_each(|line| state.take(line));
        let page = state.page.clone().expect("a page");
        assert_eq!(page.address, "127.0.0.1:40123");
        assert_eq!([page.token(WebRole::Operator), page.token(WebRole::Spectator)], ["abc-_9", "def"]);
        assert_eq!(state.json()["state"], "running");
        assert_eq!(state.messages.len(), 3, "{:?}", state.messages);
        (0..200).for_each(|i| state.take(&format!("line {i} {}", "x".repeat(5000))));
        assert_eq!(state.messages.len(), MAX_MESSAGES);
        assert!(state.messages[49].starts_with("line 199 ") && state.messages[49].len() == MAX_MESSAGE_CHARS);
    }
}

//! A family of processes for the tests of this room, that ends with the test.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::clock::Clock;
use super::processes;
use crate::decide::Nanos;

/// A shell that runs a script. Descriptor 3 of it is a pipe to which nothing is written: what reads from that (`cat
/// <&3`, `read x <&3`) lives until this is dropped, and not longer than the test's own process, whatever ends that.
pub(super) struct Shell(Child);

impl Shell {
    pub(super) fn run(script: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3<&0; {script}")]).envs(environment.iter().copied());
        // Whatever is left of it keeps nothing of ours open.
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a shell"))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end, though its input stays open.
    pub(super) fn wait(&mut self) -> ExitStatus {
        let input = self.0.stdin.take();
        let ended = self.0.wait().expect("ours");
        drop(input);
        ended
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let pid = self.id();
        processes::kill_all(|| processes::descendants(pid));
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks again and again until it holds.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::started_ago(Nanos::ZERO);
    while !holds() {
        assert!(clock.now() < Nanos::from_secs(30), "waited in vain for {what}");
        clock.sleep_until(clock.now() + Nanos::from(Duration::from_millis(2)));
    }
}

//! Process tree for tests, which ends with the test.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::clock::Clock;
use crate::processes;
use weir_base::Nanos;

/// Shell that runs a script. Its descriptor 3 is a pipe without data: processes that read from it (`cat <&3`,
/// `read x <&3`) live until this is dropped or the test process ends.
pub(crate) struct Shell(Child);

impl Shell {
    pub(crate) fn run(script: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3<&0; {script}")]).envs(environment.iter().copied());
        // Remaining processes hold no descriptor of the test.
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a shell"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for the end of the shell, with its input open.
    pub(crate) fn wait(&mut self) -> ExitStatus {
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

/// Polls until the condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::started_ago(Nanos::ZERO);
    while !holds() {
        assert!(clock.now() < Nanos::from_secs(30), "waited in vain for {what}");
        clock.sleep_until(clock.now() + Nanos::from(Duration::from_millis(2)));
    }
}

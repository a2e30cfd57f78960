//! Senders that share a queue and keys on a Redis server, with clocks that differ by hours.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::setting::{SYNCED, Setting, Terms};
use rustix::process::Signal;
use weir_send::wall_ms;
use weir_testing::{Running, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(60);
const HOUR_MS: i64 = 3_600_000;
/// Preloaded library that shifts the wall clock.
const SHIFTED: &str = "#define _GNU_SOURCE\n\
    #include <sys/syscall.h>\n\
    #include <time.h>\n\
    #include <unistd.h>\n\
    int clock_gettime(clockid_t id, struct timespec *at) {\n\
        int said = (int)syscall(SYS_clock_gettime, id, at);\n\
        if (said == 0 && id == CLOCK_REALTIME) at->tv_sec += AHEAD_S;\n\
        return said;\n\
    }\n";

/// Builds the library, for a shift of these hours.
fn shifted(weir: &Weir, hours: i64) -> PathBuf {
    let source = weir.write(&format!("clock{hours}.c"), SHIFTED);
    let library = weir.path(&format!("clock{hours}.so"));
    let built = Command::new("cc")
        .args(["-std=gnu11", "-shared", "-fPIC", &format!("-DAHEAD_S={}", hours * 3600), "-o"])
        .args([&library, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

#[test]
fn senders_whose_clocks_are_hours_apart_share_jobs_and_keys_and_break_no_limit() {
    let Some(setting) = Setting::new(&SYNCED, Terms::SHORT) else { return };
    setting.jobs(1500);
    let send = |number: usize, hours: i64| {
        // TTLs are shorter than the difference of the clocks.
        let mut command = setting.command(number, &setting.store(), &["--ttl", "10m"]);
        command.env("LD_PRELOAD", shifted(&setting.weir, hours));
        Running::new(&mut command)
    };
    // The sender that submits the jobs and first has all keys is ahead, and so are its nonces.
    let ahead = send(0, 1);
    until("it to send by all keys", TIMEOUT, || setting.owned(ahead.pid()) == setting.keys && setting.accepted() > 100);
    let others = [send(1, 0), send(2, -1)];
    let have = |sender: &Running| setting.owned(sender.pid()) > 0;
    until("all to have keys", TIMEOUT, || have(&ahead) && others.iter().all(have));
    let then = setting.accepted();
    until("all to send", TIMEOUT, || setting.accepted() > then + 200);
    // Keys were released in order already; now the rest ends without a message.
    ahead.signal(Signal::KILL);
    assert_eq!(ahead.finish().code, -1);
    for sender in others {
        let output = sender.finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    }
    setting.check_refusals();
    setting.check_tries(3);
    assert_eq!((setting.state("done"), setting.told(3).len()), (1500, 1500));
    let (now_ms, sent) = (wall_ms().0, setting.sent(3));
    for (by, hours) in [(0, 1), (1, 0), (2, -1)] {
        let mut off = sent.iter().filter(|sent| sent.by == by).map(|sent| sent.sent_ms - now_ms - hours * HOUR_MS);
        assert!(off.all(|off| off.abs() < HOUR_MS / 4), "sender {by} has the clock that it was to have");
    }
}

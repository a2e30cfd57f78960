//! An upstream gets as many requests as the gateway counts attempts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{configured, to};
use weir_testing::{Reply, Server, Serving};

fn sent(gate: &Serving) -> f64 {
    let of = |why| gate.metric(&format!("weir_gate_attempts_total{{upstream=\"backend\",reason=\"{why}\"}}"));
    ["first", "stage", "failure", "retry"].map(of).iter().sum()
}

#[test]
fn a_reset_on_a_reused_connection_is_a_failed_attempt() {
    for (policy, status, attempts) in [
        ("", 502, 1),
        ("retries = 1", 200, 2),
        ("hedge = [{ after = \"20ms\", attempts = 2 }]\nbudget = \"none\"\ndeadline = \"5s\"", 504, 3),
    ] {
        let hangs = status == 504;
        // A slow warm-up has hedges, too; they may arrive when it has ended.
        let asked = AtomicU64::new(0);
        let server = Server::start(move |seen| match seen.line().contains("/warm") {
            true => Reply::ok("warm"),
            false if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
                Reply::nothing().wait(Duration::from_millis(80)).reset()
            }
            false if hangs => Reply::nothing(),
            false => Reply::ok("well"),
        });
        let gate = configured(&to(&server.url(""), "", policy));
        assert_eq!(gate.get("/warm").status, 200);
        let counted = sent(&gate);
        let answer = gate.get("/");
        assert_eq!(answer.status, status, "{policy}: {}", answer.text());
        let seen = server.seen().iter().filter(|seen| !seen.line().contains("/warm")).count();
        assert_eq!(seen as u64, attempts, "{policy}: what the upstream sees");
        assert_eq!(sent(&gate) - counted, attempts as f64, "{policy}: what is counted");
    }
}

#[test]
fn a_connection_closed_while_idle_costs_no_attempt() {
    let server = Server::build().closes_idle_after(Duration::from_millis(20)).start(|_| Reply::ok("well"));
    let gate = configured(&to(&server.url(""), "", ""));
    for k in 0..10 {
        let answer = if k % 2 == 0 { gate.get("/") } else { gate.post("/", "body") };
        assert_eq!(answer.status, 200, "{k}: {}", answer.text());
        server.wait_for_close();
    }
    assert_eq!((server.requests(), sent(&gate)), (10, 10.0));
}

#[test]
fn a_request_that_meets_the_close_of_its_connection_is_one_attempt() {
    let server = Server::build().closes_idle_after(Duration::from_millis(20)).start(|_| Reply::ok("well"));
    let gate = configured(&to(&server.url(""), "", ""));
    let mut crossed = 0;
    for k in 0..40 {
        // Around the time of the close; how many meet it depends on the machine.
        std::thread::sleep(Duration::from_millis(15 + k % 10));
        let answer = if k % 2 == 0 { gate.get("/") } else { gate.post("/", "body") };
        // The end of the stream may be read before the reset.
        let is_lost = ["(reset); attempts: 1", "(closed); attempts: 1"].iter().any(|end| answer.text().contains(end));
        crossed += u64::from(is_lost);
        assert!(is_lost || answer.status == 200, "{k}: {}", answer.text());
    }
    assert_eq!((server.requests() + crossed, sent(&gate)), (40, 40.0));
}

//! A service that breaks the rules of HTTP/2: weir ends what has to be ended, by the right code, and goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::Weir;
use weir_testing::hostile::{HostileOptions, HostileServer};

#[test]
fn every_violation_ends_what_the_rfc_demands_and_the_load_goes_on() {
    let names = HostileOptions::names();
    assert!(names.len() > 90, "{names:?}");
    for flags in [["-c", "3"].as_slice(), &["--users", "24"], &["--users", "24", "--check", "status == 200"]] {
        let options =
            HostileOptions { violation: 0.4, goaway: 0.02, reset: 0.02, seed: 7, ..HostileOptions::default() };
        let service = HostileServer::start(options);
        let flags = [&["--h2c", "--streams", "8", "-n", "2500", "--timeout", "20s", "-q"], flags].concat();
        let run = Weir::new().load(&service.url(), &flags);
        let counts = service.finish();
        let mut lost = 0;
        for name in &names {
            let of_name = counts.violations.get(name).unwrap_or_else(|| panic!("'{name}' was not played"));
            // The words of a client that closes while a flood comes are lost.
            assert_eq!(of_name.right + of_name.closed, of_name.sent, "{flags:?} {name}: {of_name:?}");
            lost += of_name.closed;
        }
        assert_eq!(run.requests.ok, counts.responses, "{flags:?}");
        assert!(lost < 200, "{flags:?}: {lost}");
        assert_eq!(run.requests.total, 2500, "{flags:?}");
        let http2 = run.http2.unwrap();
        assert_eq!(http2.errors.get("INTERNAL_ERROR").copied(), Some(counts.resets), "{flags:?}");
        assert!((1..=run.connections.opened).contains(&http2.goaways) && http2.resent > 0, "{flags:?} {http2:?}");
        assert!(run.failures["protocol"] > 600, "{flags:?} {:?}", run.failures);
    }
}

#[test]
fn goaway_loses_no_request() {
    for flags in [["-c", "3"].as_slice(), &["--users", "24"], &["-r", "2000", "-c", "3"]] {
        let service = HostileServer::start(HostileOptions { goaway: 0.03, seed: 1, ..HostileOptions::default() });
        let flags = [&["--h2c", "--streams", "8", "-n", "3000"], flags].concat();
        let run = Weir::new().load(&service.url(), &flags);
        let counts = service.finish();
        assert_eq!((run.requests.ok, run.requests.failed), (3000, 0), "{flags:?} {:?}", run.failures);
        assert_eq!(counts.responses, 3000, "{flags:?}");
        // Requests that move take the places of others: 24 streams, and those of connections that are replaced. At a
        // rate, those that are late on a busy machine are more.
        let has_rate = flags.contains(&"-r");
        assert!(has_rate || run.in_flight_mean < 48.0, "{flags:?} {}", run.in_flight_mean);
        assert!(run.http2.unwrap().resent > 50, "{flags:?}");
    }
}

#[test]
fn connections_that_close_without_a_word_fail_their_requests_alone() {
    let service = HostileServer::start(HostileOptions { close: 0.02, ..HostileOptions::default() });
    let run = Weir::new().load(&service.url(), &["--h2c", "--streams", "8", "-c", "3", "-n", "2000"]);
    let counts = service.finish();
    assert_eq!((run.requests.total, run.requests.ok), (2000, counts.responses));
    let failed: u64 = ["closed", "reset"].iter().filter_map(|kind| run.failures.get(*kind)).sum();
    assert_eq!(failed, run.requests.failed, "{:?}", run.failures);
    assert!(failed >= counts.closes, "{counts:?}");
}

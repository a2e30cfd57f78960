//! A service that breaks the rules of HTTP/2: weir ends what has to be ended, by the right code, and goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde_json::Value;
use weir_testing::{Serving, Weir, over_http2};

fn stats(service: &Serving) -> Value {
    let mut found = Value::Null;
    over_http2(&service.address, async |mut sender| {
        let request = Request::get(format!("{}/stats", service.url)).body(Full::<Bytes>::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        found = serde_json::from_slice(&body).unwrap();
    });
    found
}

fn names() -> Vec<String> {
    let output = Weir::new().run(&["serve", "hostile-h2", "--list"]);
    assert_eq!(output.code, 0, "{output:?}");
    output.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn every_violation_ends_what_the_rfc_demands_and_the_load_goes_on() {
    let names = names();
    assert!(names.len() > 90, "{names:?}");
    for flags in [["-c", "3"].as_slice(), &["--users", "24"], &["--users", "24", "--check", "status == 200"]] {
        let service =
            Serving::start(&["hostile-h2", "--violation", "40%", "--goaway", "2%", "--reset", "2%", "--seed", "7"]);
        let flags = [&["--h2c", "--streams", "8", "-n", "2500", "--timeout", "20s", "-q"], flags].concat();
        let run = Weir::new().load(&service.url, &flags);
        let stats = stats(&service);
        let violations = stats["violations"].as_object().unwrap();
        let mut lost = 0;
        for name in &names {
            let counts = &violations.get(name).unwrap_or_else(|| panic!("'{name}' was not played"));
            // The words of a client that closes while a flood comes are lost.
            let known = counts["right"].as_u64().unwrap() + counts["closed"].as_u64().unwrap();
            assert_eq!(Some(known), counts["sent"].as_u64(), "{flags:?} {name}: {counts}");
            lost += counts["closed"].as_u64().unwrap();
        }
        assert_eq!(run.requests.ok, stats["responses"].as_u64().unwrap(), "{flags:?}");
        assert!(lost < 200, "{flags:?}: {lost}");
        assert_eq!(run.requests.total, 2500, "{flags:?}");
        let http2 = run.http2.unwrap();
        assert_eq!(http2.errors.get("INTERNAL_ERROR").copied(), stats["resets"].as_u64(), "{flags:?}");
        assert!((1..=run.connections.opened).contains(&http2.goaways) && http2.resent > 0, "{flags:?} {http2:?}");
        assert!(run.failures["protocol"] > 600, "{flags:?} {:?}", run.failures);
    }
}

#[test]
fn goaway_loses_no_request() {
    for flags in [["-c", "3"].as_slice(), &["--users", "24"], &["-r", "2000", "-c", "3"]] {
        let service = Serving::start(&["hostile-h2", "--violation", "0%", "--goaway", "3%", "--seed", "1"]);
        let flags = [&["--h2c", "--streams", "8", "-n", "3000"], flags].concat();
        let run = Weir::new().load(&service.url, &flags);
        let stats = stats(&service);
        assert_eq!((run.requests.ok, run.requests.failed), (3000, 0), "{flags:?} {:?}", run.failures);
        assert_eq!(stats["responses"], 3000, "{flags:?}");
        // Requests that move take the places of others: 24 streams, and those of connections that are replaced. At a
        // rate, those that are late on a busy machine are more.
        let has_rate = flags.contains(&"-r");
        assert!(has_rate || run.in_flight_mean < 48.0, "{flags:?} {}", run.in_flight_mean);
        assert!(run.http2.unwrap().resent > 50, "{flags:?}");
    }
}

#[test]
fn connections_that_close_without_a_word_fail_their_requests_alone() {
    let service = Serving::start(&["hostile-h2", "--violation", "0%", "--close", "2%"]);
    let run = Weir::new().load(&service.url, &["--h2c", "--streams", "8", "-c", "3", "-n", "2000"]);
    let stats = stats(&service);
    assert_eq!((run.requests.total, run.requests.ok), (2000, stats["responses"].as_u64().unwrap()));
    let failed: u64 = ["closed", "reset"].iter().filter_map(|kind| run.failures.get(*kind)).sum();
    assert_eq!(failed, run.requests.failed, "{:?}", run.failures);
    assert!(failed >= stats["closes"].as_u64().unwrap(), "{stats}");
}

#[test]
fn what_does_not_exist_is_one_line() {
    let output = Weir::new().run(&["serve", "hostile-h2", "--only", "nonsense"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.one_line().contains("no violation has 'nonsense' in its name"), "{output:?}");
}

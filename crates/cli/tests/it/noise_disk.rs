//! Disks that fill up, and stores that several processes use: one clear line, and nothing is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::time::Duration;

use serde_json::json;
use weir_testing::{Disk, Server, Serving, Weir, until};

use super::ui::Ui;

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_run_on_a_full_disk_is_reported_and_the_saved_ones_stay() {
    let (server, weir) = (Server::hello(), Weir::new());
    let place = weir.path("small");
    fs::create_dir(&place).unwrap();
    let Some(disk) = Disk::mount(&place, 4) else { return };
    let flags = ["load", &server.url("/"), "-n", "50", "-c", "2", "-q", "--format", "json", "--save=small/runs.db"];
    assert_eq!(weir.run(&flags).code, 0);
    // Full before the run: the store is there, so that it may have room again at the end.
    disk.fill();
    let output = weir.run(&flags);
    assert_eq!((output.code, output.json().requests.total), (2, 50), "{output:?}");
    let before = server.requests();
    assert!(output.one_line().starts_with("--save: ") && output.one_line().contains("full"), "{output:?}");
    // Full before its end: the report is there.
    disk.free();
    let running = weir.start(&[
        "load",
        &server.url("/"),
        "--rate",
        "50",
        "-d",
        "3s",
        "-q",
        "--format",
        "json",
        "--save=small/runs.db",
    ]);
    server.wait_for("requests", |counts| counts.requests > before + 20);
    disk.fill();
    let output = running.finish();
    assert_eq!((output.code, output.json().requests.total), (2, 150), "{output:?}");
    assert!(output.one_line().starts_with("--save: ") && output.one_line().contains("full"), "{output:?}");
    disk.free();
    assert_eq!(weir.run(&flags).code, 0);
    let listed = weir.run(&["history", "small/runs.db", "--format", "json"]);
    let runs: serde_json::Value =
        serde_json::from_str(&listed.stdout).unwrap_or_else(|why| panic!("{why}: {listed:?}"));
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn a_recording_on_a_full_disk_says_so_and_what_was_recorded_stays() {
    let (server, weir) = (Server::hello(), Weir::new());
    let place = weir.path("small");
    fs::create_dir(&place).unwrap();
    let Some(disk) = Disk::mount(&place, 4) else { return };
    let url = server.url("");
    let recorder = Serving::record_in(weir, &["--upstream", &url, "-o", "small/shop.hurl"]);
    for n in 0..5 {
        assert_eq!(recorder.get(&format!("/first/{n}")).status, 200);
    }
    disk.fill();
    // The client is served as before.
    for n in 0..200 {
        assert_eq!(recorder.get(&format!("/{}/{n}", "x".repeat(500))).status, 200);
    }
    disk.free();
    // And recorded again.
    for n in 0..5 {
        assert_eq!(recorder.get(&format!("/last/{n}")).status, 200);
    }
    let (output, weir) = recorder.interrupt();
    assert!(output.stderr.contains("No space left on device"), "{output:?}");
    assert!(output.stderr.contains(" requests that could not be written"), "{output:?}");
    assert!(!output.stderr.contains("panic"), "{output:?}");
    let scenario = fs::read_to_string(weir.path("small/shop.hurl")).unwrap_or_default();
    let har: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(weir.path("small/shop.recording.har")).unwrap_or_default())
            .unwrap_or_default();
    assert_eq!(har, serde_json::Value::Null, "the scenario is written, so that the recording is not needed any more");
    for n in 0..5 {
        assert!(scenario.contains(&format!("/first/{n}")), "{n}: {scenario}\n{output:?}");
        assert!(scenario.contains(&format!("/last/{n}")), "{n}: {scenario}\n{output:?}");
    }
}

#[test]
fn files_of_lines_go_on_after_a_full_disk() {
    let (server, weir) = (Server::hello(), Weir::new());
    let place = weir.path("small");
    fs::create_dir(&place).unwrap();
    let Some(disk) = Disk::mount(&place, 4) else { return };
    let url = server.url("/");
    let running = weir.start(&[
        "load",
        &url,
        "--rate",
        "2000",
        "-d",
        "6s",
        "-q",
        "--format",
        "json",
        "--jtl=small/log.jtl",
        "--out-jsonl=small/log.jsonl",
    ]);
    server.wait_for("requests", |counts| counts.requests > 2000);
    until("lines", PATIENCE, || fs::metadata(place.join("log.jtl")).is_ok_and(|file| file.len() > 0));
    disk.fill();
    let before = server.requests();
    server.wait_for("requests", |counts| counts.requests > before + 3000);
    disk.free();
    let output = running.finish();
    assert_eq!(output.code, 2, "{output:?}");
    let total = output.json().requests.total;
    assert_eq!(total, 12_000);
    let (_, said) = output.stderr.split_once("cannot write small/log.jtl: ").unwrap_or_else(|| panic!("{output:?}"));
    let lost: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(output.json().lost_log_lines, Some(lost));
    assert!(said.contains("of 12000 lines were lost: No space left on device"), "{said}");
    let log = fs::read_to_string(place.join("log.jtl")).unwrap();
    assert!(log.ends_with('\n'));
    for line in log.lines() {
        assert_eq!(line.split(',').count(), 20, "{line}");
    }
    assert_eq!(log.lines().count() as u64 - 1 + lost, total, "the header, and each line or its loss");
    for line in fs::read_to_string(place.join("log.jsonl")).unwrap().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn an_upload_to_a_full_disk_is_an_error_and_leaves_nothing() {
    let weir = Weir::new();
    let place = weir.path("small");
    fs::create_dir(&place).unwrap();
    let Some(disk) = Disk::mount(&place, 4) else { return };
    let ui = Ui::start_in(weir, &["--store", "small/runs.db"]);
    let upload = |bytes: &[u8]| ui.request(("POST", "/api/files?name=a.csv"), &ui.operator, "", bytes);
    assert_eq!(upload(b"user\nann\n").0, 200);
    disk.fill();
    let (status, text) = upload(&[b'x'; 500_000]);
    assert!(status == 422 && text.contains("No space left on device"), "{status} {text}");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(place.join("uploads")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(
        (names(), fs::read(place.join("uploads/a.csv")).unwrap()),
        (vec!["a.csv".to_owned()], b"user\nann\n".to_vec())
    );
    disk.free();
    assert_eq!(upload(&[b'x'; 500_000]).0, 200);
}

#[test]
fn two_pages_share_a_store() {
    let (server, weir) = (Server::hello(), Weir::new());
    let store = weir.path("runs.db").display().to_string();
    let pages = [Ui::start_in(weir, &["--store", &store]), Ui::start(&["--store", &store])];
    let form =
        json!({ "url": server.url("/"), "label": "both", "options": [["requests", "200"], ["connections", "2"]] });
    for page in &pages {
        assert_eq!(page.asked("/api/start", &form)["number"], 1);
    }
    for page in &pages {
        until("both runs", PATIENCE, || page.runs().len() == 2);
        let again = page.asked("/api/form", &json!(2));
        assert_eq!(again["label"], "both");
    }
    assert_eq!(server.requests(), 400);
}

//! Budgets of frames, against a naive splitter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use proptest::prelude::*;

const PING: u8 = 0x6;
const WINDOW_UPDATE: u8 = 0x8;

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags, 0, 0, 0, 1]);
    bytes.extend_from_slice(payload);
    bytes
}

fn opened() -> ControlFrameBudget {
    let mut budget = ControlFrameBudget::new(Nanos::ZERO);
    budget.received(&[0; PREFACE_BYTES]);
    budget
}

/// Frames per second of a kind at which a connection ends, from these, within 20 s.
fn ends(per_s: &[u32], bytes: &[u8], sent_per_s: usize) -> Vec<bool> {
    let run = |frames: u32| {
        let mut budget = opened();
        (1..=200).any(|tenth| {
            (0..frames / 10).for_each(|_| budget.received(bytes));
            budget.sent(sent_per_s / 10);
            budget.is_exceeded(Nanos::from_millis(tenth * 100))
        })
    };
    per_s.iter().map(|frames| run(*frames)).collect()
}

#[test]
fn a_flood_of_frames_without_content_ends_and_what_clients_send_does_not() {
    let ping = frame(PING, 0, &[0; 8]);
    assert_eq!(ends(&[9_000, 12_000], &ping, 0), [false, true]);
    let update = frame(WINDOW_UPDATE, 0, &[0, 0, 64, 0]);
    assert_eq!(ends(&[60_000], &update, 0), [true]);
    assert_eq!(ends(&[60_000], &update, 1_000_000_000), [false], "a download");
    assert_eq!(ends(&[400_000], &update, 1_000_000_000), [true]);
    assert_eq!(ends(&[1_000_000], &frame(DATA, 0, b"content"), 0), [false]);
    assert_eq!(ends(&[60_000, 60_000], &frame(DATA, 0, b""), 0), [true, true]);
    assert_eq!(ends(&[60_000], &frame(DATA, END_STREAM, b""), 0), [false], "the end of a body");
}

#[test]
fn header_blocks_of_references_cost_what_they_cost_the_server() {
    let request = frame(HEADERS, END_HEADERS | END_STREAM, &[0x82; 40]);
    assert_eq!(ends(&[100_000], &request, 0), [false], "forty fields each");
    let bomb = frame(HEADERS, END_HEADERS | END_STREAM, &[0x82; 4096]);
    assert_eq!(ends(&[300], &bomb, 0), [true], "1.2 MB/s");
}

#[test]
fn a_head_is_in_progress_from_its_first_byte_to_the_end_of_its_block() {
    let mut budget = opened();
    assert!(!budget.is_in_head());
    budget.received(&frame(PING, 0, &[0; 8]));
    assert!(!budget.is_in_head());
    let head = frame(HEADERS, END_STREAM, &[0x82; 3]);
    budget.received(&head[..10]);
    assert!(budget.is_in_head());
    budget.received(&head[10..]);
    assert!(budget.is_in_head(), "its block goes on");
    budget.received(&frame(CONTINUATION, END_HEADERS, &[0x84]));
    assert!(!budget.is_in_head());
}

proptest! {
    /// Against a naive splitter that has all bytes at once.
    #[test]
    fn frames_are_the_same_in_whatever_pieces_they_come(
        frames in prop::collection::vec((0_u8..11, any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..30),
        cuts in prop::collection::vec(1_usize..64, 1..400),
    ) {
        let mut bytes = vec![0; PREFACE_BYTES];
        let mut expected = Vec::new();
        for (kind, flags, payload) in &frames {
            bytes.extend(frame(*kind, *flags, payload));
            expected.push((*kind, *flags, payload.clone()));
        }
        let mut splitter = FrameSplitter::default();
        let mut seen: Vec<(u8, u8, Vec<u8>)> = Vec::new();
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let length = cuts.next().copied().unwrap_or(1).min(rest.len());
            let (mut piece, after) = rest.split_at(length);
            rest = after;
            while !piece.is_empty() {
                match splitter.next(&mut piece) {
                    Some(FramePart::Head(head)) => seen.push((head.kind, head.flags, Vec::new())),
                    Some(FramePart::Payload(kind, part)) => {
                        let (last, _, payload) = seen.last_mut().unwrap();
                        prop_assert_eq!(*last, kind);
                        payload.extend_from_slice(part);
                    }
                    None => {}
                }
            }
        }
        prop_assert!(!splitter.is_in_frame());
        prop_assert_eq!(seen, expected);
    }
}

//! Allocations of a step. This program is one of its own, since it replaces the allocator.

#[path = "../../../testing/src/counting_allocator.rs"]
mod counting_allocator;
mod step_player;

use counting_allocator::CountingAllocator;
use step_player::StepPlayer;
use weir_scenario::evaluate::ResponseView;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BODY: &[u8] = br#"{"token": "0123456789abcdef", "items": [{"id": 1}, {"id": 2}], "count": 2}"#;
const ITERATIONS: u64 = 100;

/// Allocations of an iteration of a file, after a first one.
fn allocations(text: &str) -> u64 {
    let mut player = StepPlayer::new(text);
    let view = ResponseView { version: "1.1", status: 200, body: BODY, raw_body: BODY, ..ResponseView::default() };
    player.play(0, 100, &view);
    let before = CountingAllocator::allocated();
    for sequence in 1..=ITERATIONS {
        player.play(sequence, 100 + sequence as i64, &view);
    }
    (CountingAllocator::allocated() - before).div_ceil(ITERATIONS)
}

#[test]
fn a_step_without_captures_allocates_nothing() {
    let fixed = "GET http://shop/1\nHTTP 200\n\nGET http://shop/2\nHTTP/1.1 200\n[Asserts]\nstatus < 400\n";
    assert_eq!(allocations(fixed), 0);
    let rendered =
        "POST http://shop/items/{{n}}?page={{n}}\nAuthorization: Bearer {{n}}\n{\"item\": {{n}}}\nHTTP 200\n";
    assert_eq!(allocations(rendered), 0);
}

#[test]
fn a_number_in_a_body_is_checked_without_allocations() {
    let checked =
        "GET http://shop/\nHTTP 200\n[Asserts]\njsonpath \"$.items[1].id\" == 2\njsonpath \"$.count\" exists\n";
    assert_eq!(allocations(checked), 0);
}

#[test]
fn a_text_that_is_captured_is_one_allocation() {
    let captured = "GET http://shop/\nHTTP 200\n[Captures]\ntoken: jsonpath \"$.token\"\n\nGET http://shop/{{token}}\n";
    assert_eq!(allocations(captured), 1);
}

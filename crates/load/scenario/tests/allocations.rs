//! Allocations of a step. This program is one of its own, since it replaces the allocator.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "an allocator that counts is one, and only in this test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir_base::Nanos;
use weir_scenario::evaluate::ResponseView;
use weir_scenario::plan::{
    FlowAction, FlowContext, RenderScratch, RequestBytes, ScenarioPlan, ScenarioSettings, ScenarioUser, StepFindings,
};
use weir_scenario::value::Value;

/// Allocator that counts the allocations of this thread.
struct StepAllocator;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards to the system allocator; the counter is thread-local and does not allocate.
unsafe impl GlobalAlloc for StepAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: StepAllocator = StepAllocator;

const BODY: &[u8] = br#"{"token": "0123456789abcdef", "items": [{"id": 1}, {"id": 2}], "count": 2}"#;
const ITERATIONS: u64 = 100;

/// Allocations of an iteration of a file, after a first one.
fn allocations(text: &str) -> u64 {
    let file = weir_hurl::parse(text).unwrap();
    let settings = ScenarioSettings { columns: vec!["n".into()], ..ScenarioSettings::default() };
    let mut files = |name: &str| Err(name.to_owned());
    let plan = ScenarioPlan::compile(&file, &settings, &mut files).unwrap();
    let mut user = ScenarioUser::new(&plan, 1, 0);
    let (mut origins, mut scratch) = (plan.origins.clone(), RenderScratch::default());
    let (mut request, mut findings) = (RequestBytes::default(), StepFindings::default());
    let view = ResponseView { version: "1.1", status: 200, body: BODY, raw_body: BODY, ..ResponseView::default() };
    let mut before = 0;
    for sequence in 0..=ITERATIONS {
        let mut flow = FlowContext {
            plan: &plan,
            origins: &mut origins,
            request: &mut request,
            findings: &mut findings,
            scratch: &mut scratch,
            unix_s: 1_700_000_000,
        };
        user.prepare(&plan, 1, sequence).set(plan.columns[0], Value::Integer(100 + sequence as i64));
        let mut action = user.begin(&mut flow, Nanos::ZERO, Nanos::ZERO);
        while let FlowAction::Send { .. } = action {
            action = user.response(&mut flow, &view, Nanos::ZERO);
        }
        assert_eq!(action, FlowAction::End { ok: true }, "{:?}", flow.findings.failures);
        if sequence == 0 {
            before = ALLOCATED.with(Cell::get);
        }
    }
    (ALLOCATED.with(Cell::get) - before).div_ceil(ITERATIONS)
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

//! What people write on the command line: times, stages, objectives. Nothing panics, neither in reading it nor in
//! what is then made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::decide::words;
use weir::load::{Options, Plan};
use weir::measure::slo::Slo;

fuzz_target!(|text: &str| {
    if let Ok(time) = words::time(text) {
        assert!(time.as_secs_f64() <= 3e9, "{time:?}");
    }
    let _ = words::arrivals(text);
    let _ = text.parse::<Slo>();
    if let Ok(stages) = words::stages(text) {
        let options = Options { url: "http://127.0.0.1:1/".into(), stages, ..Options::default() };
        check(&options);
    }
});

/// A plan of these stages knows how long it is, and its arrivals are in order.
fn check(options: &Options) {
    let Ok(plan) = Plan::new(options) else { return };
    let _ = plan.expected_requests();
    let weir::load::Pace::Open(schedule) = &plan.pace else { panic!("stages are an open loop") };
    let arrivals: Vec<_> = schedule.clone().take(50).collect();
    for pair in arrivals.windows(2) {
        assert!(pair[0].intended <= pair[1].intended && pair[0].number < pair[1].number, "{pair:?}");
    }
    assert!(arrivals.iter().all(|arrival| arrival.intended <= plan.until), "{:?}", plan.until);
}

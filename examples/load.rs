//! Loads a service from Rust, and prints its response times.
//!
//!     cargo run --release --example load -- http://localhost:8000/

use std::time::Duration;

use weir::load::{self, LoadPlan, Options};
use weir::report::{ReportFormat, render};

fn main() -> Result<(), String> {
    let url = std::env::args().nth(1).ok_or("usage: load URL")?;
    let options = Options { url, rate: Some(100.0), duration: Some(Duration::from_secs(2)), ..Options::default() };
    // Invalid options are reported here, before a request is sent.
    let plan = LoadPlan::new(&options).map_err(|e| e.to_string())?;

    let mut max_per_s = 0;
    let mut watch = |progress: &weir::measure::RunProgress<'_>| {
        max_per_s = max_per_s.max(progress.interval.map_or(0, |second| second.ok));
        true // continue
    };
    let run = load::run(&plan, &["examples/load".into()], &mut watch, None).map_err(|e| e.to_string())?;

    print!("{}", render(&run, ReportFormat::Text, false));
    let p99 = run.response_ms.p99.map_or_else(|| "?".to_owned(), |ms| format!("{ms:.1}"));
    println!("Maximum {max_per_s} successes in a second; 99% of all within {p99} ms.");
    Ok(())
}

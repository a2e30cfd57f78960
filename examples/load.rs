//! Loads a service from Rust, and prints what its users would have waited.
//!
//!     cargo run --release --example load -- http://localhost:8000/

use std::time::Duration;

use weir::load::{self, Options, Plan};
use weir::report::{Format, render};

fn main() -> Result<(), String> {
    let url = std::env::args().nth(1).ok_or("usage: load URL")?;
    let options = Options { url, rate: Some(100.0), duration: Some(Duration::from_secs(2)), ..Options::default() };
    // All that can be wrong with what was asked for is said here, before anything is sent.
    let plan = Plan::new(&options).map_err(|e| e.to_string())?;

    let mut most_per_s = 0;
    let mut watch = |progress: &weir::measure::Progress<'_>| {
        most_per_s = most_per_s.max(progress.second.map_or(0, |second| second.ok));
        true // go on
    };
    let run = load::run(&plan, &["examples/load".into()], &mut watch, None).map_err(|e| e.to_string())?;

    print!("{}", render(&run, Format::Text, false));
    println!("At most {most_per_s} good answers in a second; 99 % of all within {:.1} ms.", run.response_ms.p99);
    Ok(())
}

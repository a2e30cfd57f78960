//! Plays seeded connections until the client has got a number of frames: valid ones, mutated ones and ones out of place.
//! Ends with a panic at the first thing that RFC 9113 does not permit a client, with the seed of the connection.
//!
//! ```console
//! $ cargo run --release -p weir-http2 --example seeded_frames -- 100000000
//! $ cargo run --release -p weir-http2 --example seeded_frames -- 1 SEED      # the connection of a seed again
//! ```
#![allow(clippy::print_stdout, reason = "its result")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "it reads the clock to print its speed"
)]

#[path = "../tests/seeded_peer/mod.rs"]
mod seeded_peer;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use seeded_peer::{FrameMistakes, FrameTally, play};
use weir_http2::error_code::ErrorCode;
use weir_http2::frame::FrameKind;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let frames: u64 = arguments.next().ok_or("give the number of frames")?.parse()?;
    let first: u64 = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let (mistakes, mut tally) = (FrameMistakes::new(), FrameTally::default());
    let start = Instant::now();
    for seed in first.. {
        if tally.frame_count() >= frames {
            break;
        }
        // The message of the panic is on stderr already.
        catch_unwind(AssertUnwindSafe(|| play(seed, &mistakes, &mut tally)))
            .map_err(|_| format!("the connection of seed {seed} failed"))?;
    }
    print(&tally, start.elapsed().as_secs_f64());
    Ok(())
}

fn print(tally: &FrameTally, seconds: f64) {
    let count = tally.frame_count();
    println!("{count} frames in {seconds:.0} s, {:.0} a second, none treated wrongly", count as f64 / seconds);
    for (number, count) in tally.frames.iter().enumerate() {
        let kind = FrameKind::of(number as u8);
        let name = if number > 9 { "others".to_owned() } else { format!("{kind:?}") };
        println!("  {name:13} {count}");
    }
    let FrameTally { connections, requests, whole, compared, mistakes, .. } = tally;
    println!("{connections} connections with {requests} requests; {mistakes} mistakes of the service");
    println!("{whole} whole responses; {compared} ends compared with what a faultless service had sent");
    for (what, counts) in [("connections", &tally.ends), ("streams", &tally.resets)] {
        let codes: Vec<String> = counts.iter().map(|(code, count)| format!("{} {count}", ErrorCode(*code))).collect();
        println!("{what} that the client ended: {}", codes.join(", "));
    }
    let (held, output) = (tally.max_held_bytes, tally.max_output_bytes);
    println!("at most {held} bytes held by a connection, {output} of them output that waits to be written");
}

//! Access logs that are damaged in every way: the body of the fuzz target on mutated seeds.
#![allow(clippy::disallowed_methods, reason = "it reads seeds")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

mod log_check;

use std::fs;
use std::path::Path;

use weir_base::rng::SeededRng;

use log_check::check;

/// Number of damaged logs.
const LOGS: usize = 30_000;

#[test]
fn damaged_logs_are_read_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/accesslog");
    let mut seeds: Vec<(std::ffi::OsString, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
        .collect();
    seeds.sort();
    assert!(seeds.len() > 5);
    for (name, seed) in &seeds {
        assert!(check(seed) > 0, "{name:?} has no request");
    }
    let mut rng = SeededRng::new(1, 0x6c6f_6773);
    let mut read = 0;
    for _ in 0..LOGS {
        let mut bytes = seeds[rng.below(seeds.len())].1.clone();
        for _ in 0..=rng.below(6) {
            let at = rng.below(bytes.len().max(1));
            match rng.below(5) {
                0 => drop(bytes.splice(
                    at..at,
                    [b' ', b'"', b'\\', b'$', b'%', b'{', 0xff, b'['][rng.below(8)..].iter().copied().take(1),
                )),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 if at < bytes.len() => bytes[at] = rng.bits() as u8,
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let other = &seeds[rng.below(seeds.len())].1;
                    let from = rng.below(other.len());
                    bytes.splice(at.min(bytes.len()).., other[from..].iter().copied());
                }
            }
        }
        read += check(&bytes);
    }
    assert!(read > 1000, "only {read} requests were read");
}

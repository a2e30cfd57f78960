//! How the command is linked in the profile `dev`.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // At a fixed address: without optimisation, half of a start is 350,000 relocations and the copies of 1,000 pages that
    // they change, and the tests start the command 6,000 times. What users install may be at any address.
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

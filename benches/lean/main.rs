//! The lean server: the least that can answer HTTP/1.1, and HTTP/2 without TLS, so that the load generator is what is
//! measured.
//!
//! One thread and one epoll instance answer every GET with the same small keep-alive response. Around that one seam
//! (a request has arrived: answer now, or when?) stand the behaviours of `behaviour`: it can stand still for a part of
//! every period (`freeze`), note exactly when each request arrived (`arrivals`), or answer each after a delay of known
//! distribution (`delay`). Its counts are the ones the benchmarks believe, not those of the generator.
//!
//! It reads no bodies, limits nothing and trusts its clients. Paths that begin with `/_` are its own: `/_stats`,
//! `/_arrivals?rate=5000` and `/_reset`; they are neither counted nor delayed.
//!
//! `lean --port 0 [--arrivals | --freeze 1.0/5.0 | --delay constant:20ms|uniform:10ms-50ms|two:10ms*0.8,200ms*0.2]
//! [--seed N] [--spin]`
#![allow(unreachable_pub, missing_docs, missing_debug_implementations, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "this is an edge: it reads the clock to time arrivals")]

mod arrivals;
mod behaviour;
mod clock;
mod connection;
mod delay;
mod freeze;
mod server;
mod streams;

use std::io::Write;
use std::process::ExitCode;

use arrivals::Arrivals;
use behaviour::{Behaviour, Plain};
use delay::Delay;
use freeze::Freeze;
use server::Server;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` starts every bench with this flag; this one would serve for ever.
    if args.is_empty() || args.iter().any(|arg| arg == "--bench") {
        eprintln!("usage: lean --port P [--arrivals | --freeze S/S | --delay SPEC] [--seed N] [--spin]");
        return ExitCode::SUCCESS;
    }
    match Options::parse(&args).and_then(Options::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lean: {error}");
            ExitCode::from(2)
        }
    }
}

#[derive(Default)]
struct Options {
    port: u16, // 0: any free one
    arrivals: bool,
    freeze: Option<Freeze>,
    delay: Option<String>,
    seed: u64,
    spin: bool, // never sleep, so that an arrival is seen within microseconds
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { seed: 1, ..Self::default() };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            match flag.as_str() {
                "--arrivals" => options.arrivals = true,
                "--spin" => options.spin = true,
                "--port" => options.port = number(flag, value()?)?,
                "--seed" => options.seed = number(flag, value()?)?,
                "--freeze" => options.freeze = Some(value()?.parse()?),
                "--delay" => options.delay = Some(value()?.clone()),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        if usize::from(options.arrivals) + usize::from(options.freeze.is_some()) + usize::from(options.delay.is_some())
            > 1
        {
            return Err("only one of --arrivals, --freeze and --delay".to_owned());
        }
        Ok(options)
    }

    fn serve(self) -> Result<(), String> {
        let (port, spin) = (self.port, self.spin);
        if let Some(freeze) = self.freeze {
            return listen(freeze, port, spin);
        }
        if let Some(spec) = self.delay {
            return listen(Delay::new(&spec, self.seed)?, port, spin);
        }
        if self.arrivals {
            return listen(Arrivals::default(), port, true);
        }
        listen(Plain, port, spin)
    }
}

fn number<T: std::str::FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} {value}: not a number in range"))
}

fn listen<B: Behaviour>(behaviour: B, port: u16, spin: bool) -> Result<(), String> {
    let (mut server, port) = Server::bind(behaviour, port, spin).map_err(|error| format!("port {port}: {error}"))?;
    println!("{{\"listening\":\"http://127.0.0.1:{port}\"}}");
    // A reader that has gone away is no reason not to serve.
    let _ = std::io::stdout().flush();
    server.run().map_err(|error| error.to_string())
}

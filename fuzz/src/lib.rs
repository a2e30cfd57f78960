//! What is fuzzed: a function for each target, which takes the bytes of an input and panics if they break something.
//!
//! `main.rs` hands them to libFuzzer (`scripts/fuzz.sh`); `tests/wide` changes the seeds at random, which needs neither that
//! nor another build.

#[path = "../../crates/net/http2/tests/seeded_peer/allocation.rs"]
mod allocation;
mod stream_pieces;

/// Defines the function of a target, `run`, from an input of a type that [`arbitrary`] knows and a body. A body fails by a
/// panic.
macro_rules! target {
    (|$input:ident: $kind:ty| $body:block) => {
        pub(crate) fn run(bytes: &[u8]) {
            use arbitrary::{Arbitrary, Unstructured};
            let Ok($input) = <$kind as Arbitrary>::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
            $body
        }
    };
}
use target;

/// Passes the names of all targets to a macro.
#[macro_export]
macro_rules! each_target {
    ($then:ident) => {
        $then! {
            accesslog,
            agents,
            answers,
            callers,
            cookies,
            datasets,
            dns,
            events,
            gate_config,
            grpc,
            http2,
            hurl,
            import,
            jobs,
            json_path,
            k6_options,
            limiter_key,
            paths,
            proxy_header,
            rehearsal,
            request,
            results,
            run,
            scenario,
            services,
            study_file,
            target,
            traces,
            typescript,
            upstream,
            websocket,
            words,
        }
    };
}

/// Declares the modules of the targets and [`named`].
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        mod targets {
            $(pub(crate) mod $name;)*
        }

        /// Target of a name.
        pub fn named(name: &str) -> Option<fn(&[u8])> {
            match name {
                $(stringify!($name) => Some(targets::$name::run),)*
                _ => None,
            }
        }
    };
}

each_target!(targets);

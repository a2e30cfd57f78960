//! A gateway of a configuration as text, in this process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;

use weir_gate::{self as gate, Gate, config};
use weir_server::Options;
use weir_testing::{Answer, Raw};

pub(crate) struct Started(Gate);

/// Starts it on a free port.
pub(crate) fn started(text: &str) -> Started {
    let config = config::parse(text, Path::new("/nowhere")).unwrap();
    Started(gate::start(&config, gate::Options::default(), &Options::default()).unwrap())
}

impl Started {
    pub(crate) fn connect(&self) -> Raw {
        Raw::connect(self.0.url().trim_start_matches("http://"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.connect().get(path)
    }

    /// The value of a metric with its labels; 0 without it.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let answer = self.get("/metrics");
        let line = answer.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

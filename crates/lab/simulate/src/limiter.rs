//! Limiters by name.

use std::fmt;

use super::Scenario;
use super::admission::WeirGate;
use super::culprits::CulpritGate;
use super::gate::SimulatedGate;
use super::peers::aimd::Aimd;
use super::peers::codel::Codel;
use super::peers::envoy::Envoy;
use super::peers::fixed::FixedLimit;
use super::peers::gradient2::Gradient2;
use super::peers::vegas::Vegas;
use super::peers::{LimitAlgorithm, LimitGate};
use weir_resilience::admission::AdmissionConfig;

/// Limiter of the calls at the upstream.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatedLimiter {
    /// weir's, with the defaults of `weir gate`.
    Auto,
    /// weir's, with `shed_culprits`.
    Culprits,
    /// Fixed limit over all gates; none: the initial slots of the upstream.
    Static(Option<u32>),
    /// [`super::peers::aimd`].
    Aimd,
    /// [`super::peers::vegas`].
    Vegas,
    /// [`super::peers::gradient2`].
    Gradient2,
    /// [`super::peers::envoy`].
    Envoy,
    /// [`super::peers::codel`], with twice the upstream's initial slots as workers over all gates.
    Codel,
    /// No limit.
    None,
}

impl SimulatedLimiter {
    /// weir's limiter and its peers: all that only see calls, not their origins.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Static(None),
        Self::Aimd,
        Self::Vegas,
        Self::Gradient2,
        Self::Envoy,
        Self::Codel,
        Self::None,
    ];

    /// Reads `auto`, `culprits`, `static`, `static:50`, `aimd`, `vegas`, `gradient2`, `envoy`, `codel`, `none`.
    ///
    /// # Errors
    /// Expected syntax, in one line.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(limit) = text.strip_prefix("static:") {
            let error = || format!("invalid limiter '{text}'; write a whole number from 1, e.g. static:50");
            let limit = limit.parse().ok().filter(|limit| *limit > 0).ok_or_else(error)?;
            return Ok(Self::Static(Some(limit)));
        }
        let known = Self::ALL.into_iter().chain([Self::Culprits]);
        known.into_iter().find(|limiter| limiter.to_string() == text).ok_or_else(|| {
            format!(
                "unknown limiter '{text}'; choose auto, culprits, static, static:N, aimd, vegas, gradient2, envoy, codel, \
                 none or all"
            )
        })
    }

    /// Gate number `index` of a scenario, with this limiter.
    pub fn gate(&self, scenario: &Scenario, index: u32) -> Box<dyn SimulatedGate> {
        fn with_algorithm<A: LimitAlgorithm + 'static>(algorithm: A) -> Box<dyn SimulatedGate> {
            Box::new(LimitGate::new(algorithm))
        }
        let seed = scenario.seed.wrapping_add(u64::from(index) << 32);
        // A gate's part of a number for all gates: rounded, and at least one.
        let per_gate = |all: u32| ((f64::from(all) / f64::from(scenario.gates)).round() as u32).max(1);
        let slots = scenario.upstream.all_slots();
        match self {
            Self::Auto => Box::new(WeirGate::new(&AdmissionConfig::default())),
            Self::Culprits => Box::new(CulpritGate::new(&AdmissionConfig::default())),
            Self::Static(limit) => with_algorithm(FixedLimit(Some(per_gate(limit.unwrap_or(slots))))),
            Self::Aimd => with_algorithm(Aimd::default()),
            Self::Vegas => with_algorithm(Vegas::new(seed)),
            Self::Gradient2 => with_algorithm(Gradient2::default()),
            Self::Envoy => with_algorithm(Envoy::new(seed)),
            Self::Codel => Box::new(Codel::new(per_gate(slots.saturating_mul(2)))),
            Self::None => with_algorithm(FixedLimit(None)),
        }
    }
}

impl fmt::Display for SimulatedLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Culprits => f.pad("culprits"),
            Self::Static(None) => f.pad("static"),
            Self::Static(Some(limit)) => f.pad(&format!("static:{limit}")),
            Self::Aimd => f.pad("aimd"),
            Self::Vegas => f.pad("vegas"),
            Self::Gradient2 => f.pad("gradient2"),
            Self::Envoy => f.pad("envoy"),
            Self::Codel => f.pad("codel"),
            Self::None => f.pad("none"),
        }
    }
}

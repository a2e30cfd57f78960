//! Which limiters there are.

use std::fmt;

use super::Scenario;
use super::admission::WeirGate;
use super::gate::SimulatedGate;
use super::peers::aimd::Aimd;
use super::peers::codel::Codel;
use super::peers::envoy::Envoy;
use super::peers::fixed::FixedLimit;
use super::peers::gradient2::Gradient2;
use super::peers::vegas::Vegas;
use super::peers::{LimitAlgorithm, LimitGate};
use crate::decide::admit::AdmissionConfig;

/// A way to limit what goes to the upstream.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatedLimiter {
    /// weir's, as `weir gate` has it with nothing set.
    Auto,
    /// weir's, with these terms.
    Custom(AdmissionConfig),
    /// So many over all gates; none: as many as the upstream has slots at first.
    Static(Option<u32>),
    /// [`super::peers::aimd`].
    Aimd,
    /// [`super::peers::vegas`].
    Vegas,
    /// [`super::peers::gradient2`].
    Gradient2,
    /// [`super::peers::envoy`].
    Envoy,
    /// [`super::peers::codel`], with twice as many workers over all gates as the upstream has slots at first.
    Codel,
    /// Everybody goes to the upstream.
    None,
}

impl SimulatedLimiter {
    /// weir's and those that it is compared with.
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

    /// Reads `auto`, `static`, `static:50`, `aimd`, `vegas`, `gradient2`, `envoy`, `codel`, `none`.
    ///
    /// # Errors
    /// What is expected, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(limit) = text.strip_prefix("static:") {
            let wrong = || format!("'{text}' has no limit; write a whole number from 1, e.g. static:50");
            let limit = limit.parse().ok().filter(|limit| *limit > 0).ok_or_else(wrong)?;
            return Ok(Self::Static(Some(limit)));
        }
        Self::ALL.into_iter().find(|limiter| limiter.to_string() == text).ok_or_else(|| {
            format!(
                "'{text}' is no limit; choose auto, static, static:N, aimd, vegas, gradient2, envoy, codel, none or all"
            )
        })
    }

    /// The gate number `index` of a world.
    pub fn gate(&self, world: &Scenario, index: u32) -> Box<dyn SimulatedGate> {
        fn above<A: LimitAlgorithm + 'static>(algorithm: A) -> Box<dyn SimulatedGate> {
            Box::new(LimitGate::new(algorithm))
        }
        let seed = world.seed.wrapping_add(u64::from(index) << 32);
        // A gate's share of a number for all: rounded, and at least one.
        let share = |all: u32| ((f64::from(all) / f64::from(world.gates)).round() as u32).max(1);
        let slots = world.upstream.all_slots();
        match self {
            Self::Auto => Box::new(WeirGate::new(&AdmissionConfig::default())),
            Self::Custom(terms) => Box::new(WeirGate::new(terms)),
            Self::Static(limit) => above(FixedLimit(Some(share(limit.unwrap_or(slots))))),
            Self::Aimd => above(Aimd::default()),
            Self::Vegas => above(Vegas::new(seed)),
            Self::Gradient2 => above(Gradient2::default()),
            Self::Envoy => above(Envoy::new(seed)),
            Self::Codel => Box::new(Codel::new(share(slots.saturating_mul(2)))),
            Self::None => above(FixedLimit(None)),
        }
    }
}

impl fmt::Display for SimulatedLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto | Self::Custom(_) => f.pad("auto"),
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

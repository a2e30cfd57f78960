//! Stand-in, to be replaced.
#![allow(missing_docs, reason = "replaced")]
use weir_decide::{Nanos, base::rng::SeededRng};
#[derive(Clone, Debug, Default)]
pub enum ThinkTime {
    #[default]
    None,
    Constant(Nanos),
}
impl ThinkTime {
    pub fn parse(_text: &str) -> Result<Self, String> {
        Ok(Self::None)
    }
    pub fn sample(&self, _rng: &mut SeededRng) -> Nanos {
        match self {
            Self::None => Nanos::ZERO,
            Self::Constant(n) => *n,
        }
    }
}

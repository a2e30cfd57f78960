//! Tests.

pub(crate) mod checks;
pub(crate) mod fates;
pub(crate) mod life;
pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod outages;
pub(crate) mod rates;
pub(crate) mod silence;
pub(crate) mod silent_outages;
pub(crate) mod simulation;

//! Timers: waits before samplers.

use weir_hurl::OptionName;

use super::element::PlanElement;
use super::function::number;
use crate::request::ImportedStep;
use crate::session::ImportSession;

/// Longest wait that is taken, in milliseconds.
const MAX_WAIT_MS: u64 = 86_400_000;

/// Wait before each sampler, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanTimer {
    least_ms: u64,
    most_ms: u64,
    /// Whether the plan has another distribution.
    is_uniform_instead: bool,
}

impl PlanTimer {
    /// Reads a timer; `None` if it is of another kind.
    pub(super) fn read(element: PlanElement<'_>) -> Option<Self> {
        let value = |name: &str| number(element.text(name)).unwrap_or(0).min(MAX_WAIT_MS);
        let offset = value("ConstantTimer.delay");
        let range = value("RandomTimer.range");
        Some(match element.class() {
            "ConstantTimer" => Self { least_ms: offset, most_ms: offset, is_uniform_instead: false },
            "UniformRandomTimer" => Self { least_ms: offset, most_ms: offset + range, is_uniform_instead: false },
            "GaussianRandomTimer" => {
                Self { least_ms: offset.saturating_sub(range), most_ms: offset + range, is_uniform_instead: range > 0 }
            }
            "PoissonRandomTimer" => {
                // Around its lambda, by its standard deviation.
                let deviation = (range as f64).sqrt() as u64;
                let least_ms = (offset + range).saturating_sub(deviation);
                Self { least_ms, most_ms: offset + range + deviation, is_uniform_instead: range > 0 }
            }
            _ => return None,
        })
    }

    /// Difference from the test plan, in words; `None` if there is none.
    pub(super) fn note(&self) -> Option<String> {
        let (least, most) = (self.least_ms, self.most_ms);
        self.is_uniform_instead.then(|| format!("the distribution of a timer; {least}ms..{most}ms, uniform, instead"))
    }

    /// Think time in the notation of scenarios, of all timers together; `None` without a wait.
    pub(super) fn think(timers: &[Self]) -> Option<String> {
        let sum = Self::sum(timers);
        match (sum.least_ms, sum.most_ms) {
            (_, 0) => None,
            (least, most) if least == most => Some(format!("{least}ms")),
            (least, most) => Some(format!("{least}ms..{most}ms")),
        }
    }

    fn sum(timers: &[Self]) -> Self {
        let least_ms = timers.iter().map(|timer| timer.least_ms).sum::<u64>().min(MAX_WAIT_MS);
        let most_ms = timers.iter().map(|timer| timer.most_ms).sum::<u64>().min(MAX_WAIT_MS);
        Self { least_ms, most_ms, is_uniform_instead: false }
    }

    /// Waits before a step, as its option.
    pub(super) fn apply(timers: &[Self], step: &mut ImportedStep, session: &mut ImportSession) {
        let sum = Self::sum(timers);
        if sum.most_ms == 0 {
            return;
        }
        if sum.least_ms == sum.most_ms {
            step.request.set_duration(OptionName::Delay, sum.least_ms);
            return;
        }
        let expression = crate::placeholder::parsed(&format!("{{{{randomInt {} {}}}}}", sum.least_ms, sum.most_ms));
        let expression = expression.expressions().next().cloned();
        if let Some(expression) = expression {
            let value = weir_hurl::OptionValue::Duration(weir_hurl::Templated::Expression(expression));
            step.request.set_option(OptionName::Delay, value);
        } else {
            session.note(format!("wait of {} to {} ms", sum.least_ms, sum.most_ms));
        }
    }
}

//! Which groups are culprits, and the slots that each may hold.
//!
//! Groups are taken one by one, the one with the largest ratio first, until the rest fits into the slots. So a route is
//! taken rather than one of its callers if all of them are heavy, and a caller rather than its route if the others of
//! that route are not.

use std::collections::BTreeMap;

use super::use_table::UseRow;
use super::{CallOrigin, Culprit, CulpritRule, OriginGroup};
use weir_base::Nanos;

/// Maximum number of culprits at a time.
pub(super) const MAX_CULPRITS: usize = 4;
/// Maximum fraction of calls of a culprit: who makes more of them is a part of the service's work.
const MAX_CALL_FRACTION: f64 = 0.2;
/// Minimum of slots of a culprit, as a mean: one long call is none.
const MIN_SLOTS: f64 = 2.0;
/// Calls of the others from which their time is known.
const MIN_OTHER_CALLS: f64 = 20.0;
/// Fraction of the slots that has to be demanded, so that a culprit has a limit.
pub(super) const MIN_DEMAND_FRACTION: f64 = 0.9;
/// What a culprit has to reach to stay one, of what it had to reach to become one.
const KEPT_FRACTION: f64 = 0.5;
/// Slots beyond their mean that the others keep, in standard deviations: slots in use by independent calls have the
/// variance of their mean (Poisson).
const SPARE_DEVIATIONS: f64 = 2.0;
/// Factor by which a wider group has to have a larger ratio than a narrower one.
const WIDER_FACTOR: f64 = 1.05;
/// Started calls from which a time per call is that of this moment.
const MIN_STARTED_CALLS: f64 = 1.0;

/// A culprit with what is remembered of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LimitedGroup {
    pub(super) culprit: Culprit,
    /// Fraction of calls that it had when it became a culprit: the slots that it always has.
    pub(super) call_fraction: f64,
    /// Time at which it became one.
    pub(super) since: Nanos,
}

/// Sum of the use of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UseSum {
    pub(super) slots: f64,
    pub(super) recent: f64,
    pub(super) in_flight: u32,
    pub(super) arrived: f64,
    pub(super) started: f64,
}

impl UseSum {
    pub(super) fn add(&mut self, row: &UseRow) {
        self.slots += row.slots;
        self.recent += row.recent;
        self.in_flight += row.in_flight;
        self.arrived += row.arrived;
        self.started += row.started;
    }

    fn without(self, other: Self) -> Self {
        Self {
            slots: (self.slots - other.slots).max(0.0),
            recent: (self.recent - other.recent).max(0.0),
            in_flight: self.in_flight.saturating_sub(other.in_flight),
            arrived: (self.arrived - other.arrived).max(0.0),
            started: (self.started - other.started).max(0.0),
        }
    }

    /// Mean number of slots that all calls would take, if none were rejected.
    pub(super) fn demand(&self) -> f64 {
        if self.started > 0.0 { self.slots * (self.arrived / self.started).max(1.0) } else { self.slots }
    }

    /// Time of a call of this group, as a multiple of one of the others.
    fn ratio(&self, others: &Self) -> f64 {
        (self.slots / self.started.max(MIN_STARTED_CALLS)) / (others.slots / others.started).max(f64::MIN_POSITIVE)
    }
}

/// State of the slots at the time of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoiceContext<'a> {
    pub(super) rule: &'a CulpritRule,
    pub(super) now: Nanos,
    /// Slots of the upstream.
    pub(super) slots: u32,
    /// Time that the rows are of.
    pub(super) seconds: f64,
    /// Culprits of a moment before.
    pub(super) before: &'a [LimitedGroup],
}

impl ChoiceContext<'_> {
    fn known(&self, group: OriginGroup) -> Option<&LimitedGroup> {
        self.before.iter().find(|known| known.culprit.group == group)
    }

    /// Whether a group stays a culprit in any case: the time of its calls is known once they have ended, and without
    /// its limit it would take all slots again until then.
    fn is_held(&self, group: OriginGroup) -> bool {
        self.known(group).is_some_and(|known| self.now - known.since < Nanos(2 * self.rule.window.0))
    }
}

/// Culprits, given the use of all origins.
pub(super) fn choose(rows: &[UseRow], context: &ChoiceContext<'_>) -> Vec<LimitedGroup> {
    let ChoiceContext { now, slots, seconds, .. } = *context;
    let mut total = UseSum::default();
    rows.iter().for_each(|row| total.add(row));
    let mut rest: Vec<UseRow> = rows.to_vec();
    let mut others = total;
    let mut chosen: Vec<(LimitedGroup, f64)> = Vec::new();
    let mut demanded = 0.0;
    while chosen.len() < MAX_CULPRITS {
        let is_enough = !chosen.is_empty() && with_spare(others.demand()) <= f64::from(slots);
        let Some((group, sum)) = heaviest(&rest, others, total, is_enough, context) else { break };
        rest.retain(|row| !row.is_in(&group));
        others = others.without(sum);
        let known = context.known(group);
        let measured = Nanos::from_secs_f64(sum.slots * seconds / sum.started.max(MIN_STARTED_CALLS));
        let service_time = match known {
            Some(known) if sum.started < MIN_STARTED_CALLS => known.culprit.service_time,
            _ => measured,
        };
        let call_fraction = known.map_or(sum.started / total.started, |known| known.call_fraction);
        let since = known.map_or(now, |known| known.since);
        let demand = (service_time.as_secs_f64() * sum.arrived / seconds).max(sum.slots).max(sum.recent);
        demanded += demand.max(f64::from(sum.in_flight));
        let culprit = Culprit { group, limit: 0, in_flight: 0, service_time };
        chosen.push((LimitedGroup { culprit, call_fraction, since }, demand));
    }
    demanded += others.demand();
    if demanded < MIN_DEMAND_FRACTION * f64::from(slots) {
        chosen.retain(|(of, _)| context.is_held(of.culprit.group));
    }
    share_out(&mut chosen, f64::from(slots) - with_spare(others.demand()), slots);
    chosen.into_iter().map(|(of, _)| of).collect()
}

/// Slots that calls of this mean need most of the time.
pub(super) fn with_spare(demand: f64) -> f64 {
    demand + SPARE_DEVIATIONS * demand.sqrt() + 1.0
}

/// The group that is a culprit with the largest ratio, and its use; if there are enough, of those that stay one.
fn heaviest(
    rest: &[UseRow],
    all: UseSum,
    total: UseSum,
    is_enough: bool,
    context: &ChoiceContext<'_>,
) -> Option<(OriginGroup, UseSum)> {
    let rule = context.rule;
    let mut groups: BTreeMap<OriginGroup, UseSum> = BTreeMap::new();
    for row in rest {
        if let Some(caller) = row.caller {
            groups.entry(OriginGroup::Origin(CallOrigin { route: row.route, caller })).or_default().add(row);
            groups.entry(OriginGroup::Caller(caller)).or_default().add(row);
        }
        groups.entry(OriginGroup::Route(row.route)).or_default().add(row);
    }
    let mut best: Option<(OriginGroup, UseSum, f64)> = None;
    // Narrow groups come first.
    for (group, sum) in groups {
        let is_held = context.is_held(group);
        if is_enough && !is_held {
            continue;
        }
        let kept = if context.known(group).is_some() { KEPT_FRACTION } else { 1.0 };
        let others = all.without(sum);
        let (ratio, demand) = (sum.ratio(&others), sum.demand().max(sum.recent));
        let is_culprit = others.started >= MIN_OTHER_CALLS
            && sum.started <= MAX_CALL_FRACTION * all.started
            && demand >= kept * rule.min_time * total.slots.max(total.recent)
            && demand >= MIN_SLOTS
            && ratio >= kept * rule.min_ratio;
        if (is_held || is_culprit) && best.is_none_or(|(.., best)| ratio > best * WIDER_FACTOR) {
            best = Some((group, sum, ratio));
        }
    }
    best.map(|(group, sum, _)| (group, sum))
}

/// Divides `room` among the chosen by max-min fairness of their demands. Each has one slot, and as much of all slots as
/// it had of all calls.
fn share_out(chosen: &mut [(LimitedGroup, f64)], room: f64, slots: u32) {
    chosen.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut room, mut left) = (room.max(0.0), chosen.len());
    for (of, demand) in chosen {
        let share = demand.min(room / left as f64);
        room -= share;
        left -= 1;
        let least = (of.call_fraction * f64::from(slots)).ceil().max(1.0);
        of.culprit.limit = share.floor().max(least) as u32;
    }
}

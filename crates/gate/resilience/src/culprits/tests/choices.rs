//! The choice against one that looks at each group by itself.

use proptest::prelude::*;

use super::super::choice::{MAX_CULPRITS, MIN_DEMAND_FRACTION, UseSum, with_spare};
use super::*;

/// Callers of some routes, with calls per second, and the time of a call. All that arrived has started.
fn rows() -> impl Strategy<Value = Vec<UseRow>> {
    let one = (0_u64..4, 0_u64..6, 1_u32..200, prop::sample::select(vec![0.05, 0.1, 0.3, 2.0, 5.0, 20.0]));
    prop::collection::vec(one, 1..20).prop_map(|all| {
        let mut rows: Vec<UseRow> = Vec::new();
        for (route, caller, per_s, time) in all {
            if !rows.iter().any(|row| (row.route, row.caller) == (route, Some(caller))) {
                let (slots, calls) = (f64::from(per_s) * time, f64::from(per_s) * 5.0);
                rows.push(UseRow {
                    route,
                    caller: Some(caller),
                    in_flight: slots.round() as u32,
                    slots,
                    recent: slots,
                    arrived: calls,
                    started: calls,
                });
            }
        }
        rows
    })
}

fn context(rule: &CulpritRule, slots: u32) -> ChoiceContext<'_> {
    ChoiceContext { rule, now: Nanos::from_secs(100), slots, seconds: 5.0, before: &[] }
}

fn sum<'a>(rows: impl Iterator<Item = &'a UseRow>) -> UseSum {
    let mut all = UseSum::default();
    rows.for_each(|row| all.add(row));
    all
}

/// Whether the group is a culprit among these rows, by the definition.
fn is_culprit(group: &OriginGroup, rows: &[UseRow], total_slots: f64, rule: &CulpritRule) -> Option<f64> {
    let own = sum(rows.iter().filter(|row| row.is_in(group)));
    let others = sum(rows.iter().filter(|row| !row.is_in(group)));
    let ratio = (own.slots / own.started) / (others.slots / others.started);
    let holds = others.started >= 20.0
        && own.started <= 0.2 * (own.started + others.started)
        && own.slots >= 2.0
        && own.slots >= rule.min_time * total_slots
        && ratio >= rule.min_ratio;
    holds.then_some(ratio)
}

fn groups(rows: &[UseRow]) -> Vec<OriginGroup> {
    let of = |row: &UseRow| {
        let caller = row.caller.unwrap_or_default();
        [
            OriginGroup::Origin(CallOrigin { route: row.route, caller }),
            OriginGroup::Caller(caller),
            OriginGroup::Route(row.route),
        ]
    };
    rows.iter().flat_map(of).collect()
}

proptest! {
    /// Each that is chosen is a culprit by the definition, none is left with a larger ratio, and none is missing.
    #[test]
    fn culprits_are_those_of_the_definition(rows in rows(), slots in 5_u32..400) {
        let rule = CulpritRule::default();
        let chosen = choose(&rows, &context(&rule, slots));
        let total = sum(rows.iter());
        if total.slots < MIN_DEMAND_FRACTION * f64::from(slots) - 1.0 {
            prop_assert!(chosen.is_empty(), "there is no overload");
            return Ok(());
        }
        // In the order of their choice, which is not that of the result.
        let mut rest = rows.clone();
        let mut open: Vec<OriginGroup> = chosen.iter().map(|of| of.culprit.group).collect();
        while !open.is_empty() {
            let best = groups(&rest).iter().filter_map(|group| is_culprit(group, &rest, total.slots, &rule)).fold(0.0, f64::max);
            let next = open.iter().position(|group| {
                is_culprit(group, &rest, total.slots, &rule).is_some_and(|ratio| ratio * 1.06 >= best)
            });
            prop_assert!(next.is_some(), "{open:?} of {rest:?}");
            let group = open.remove(next.unwrap_or_default());
            rest.retain(|row| !row.is_in(&group));
        }
        let is_enough = !chosen.is_empty() && with_spare(sum(rest.iter()).slots) <= f64::from(slots);
        if chosen.len() < MAX_CULPRITS && !is_enough && total.slots >= f64::from(slots) {
            let missing: Vec<OriginGroup> =
                groups(&rest).into_iter().filter(|group| is_culprit(group, &rest, total.slots, &rule).is_some()).collect();
            prop_assert!(missing.is_empty(), "{missing:?}");
        }
    }

    /// Limits leave the others what they need, except for one slot, or the fraction of calls, of each culprit; and what
    /// the others do not need is not lost.
    #[test]
    fn limits_are_what_the_others_do_not_need(rows in rows(), slots in 5_u32..400) {
        let rule = CulpritRule::default();
        let chosen = choose(&rows, &context(&rule, slots));
        let is_chosen = |row: &&UseRow| chosen.iter().any(|of| row.is_in(&of.culprit.group));
        let others = sum(rows.iter().filter(|row| !is_chosen(row)));
        let room = (f64::from(slots) - with_spare(others.slots)).max(0.0);
        let total = sum(rows.iter());
        let mut given = 0.0;
        for of in &chosen {
            let own = sum(rows.iter().filter(|row| row.is_in(&of.culprit.group)));
            let least = (f64::from(slots) * own.started / total.started).ceil().max(1.0);
            prop_assert!(of.culprit.limit >= 1);
            let limit = f64::from(of.culprit.limit);
            // A culprit that overlaps with another may have had more calls.
            prop_assert!(limit <= least.max(room) + 1.0, "{limit} of {room}, {least}");
            given += limit;
        }
        let demanded: f64 = sum(rows.iter().filter(is_chosen)).slots;
        let wasted = demanded.min(room) - given;
        prop_assert!(wasted < chosen.len().max(1) as f64, "{wasted} of {room}, {chosen:?}");
    }

    /// A culprit stays one for two windows, whatever its calls do, so that its limit does not come and go.
    #[test]
    fn a_culprit_is_kept_for_two_windows(rows in rows(), slots in 5_u32..400, later in 0_u64..20) {
        let rule = CulpritRule::default();
        let first = choose(&rows, &context(&rule, slots));
        // All calls have become short.
        let calm: Vec<UseRow> = rows.iter().map(|row| UseRow { slots: 0.01, recent: 0.01, in_flight: 0, ..*row }).collect();
        let now = Nanos::from_secs(100 + later);
        let then = choose(&calm, &ChoiceContext { now, before: &first, ..context(&rule, slots) });
        let is_in = |of: &[LimitedGroup], row: &UseRow| of.iter().any(|of| row.is_in(&of.culprit.group));
        if later < 10 {
            prop_assert!(rows.iter().all(|row| is_in(&first, row) == is_in(&then, row)), "{first:?} {then:?}");
        } else {
            prop_assert!(then.is_empty());
        }
    }
}

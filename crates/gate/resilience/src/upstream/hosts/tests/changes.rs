//! Changes of conditions: one for each way into a condition and out of it, and none besides.

use proptest::prelude::*;

use super::super::*;

const START: Nanos = Nanos::from_secs(1);

fn hosts(count: usize) -> HostBalancer {
    HostBalancer::new(&vec![1; count], BalancePolicy::RoundRobin, OutlierRule::default())
}

fn lines(hosts: &mut HostBalancer, now: Nanos, cause: &str) -> Vec<String> {
    hosts.changes(now).iter().map(|change| change.line(cause)).collect()
}

fn fail(hosts: &mut HostBalancer, host: usize, times: u32) {
    for _ in 0..times {
        hosts.began(host);
        hosts.ended(START, hosts.slot(host), HostOutcome::Failed, None);
    }
}

#[test]
fn a_check_that_fails_and_passes_is_two_changes() {
    let mut all = hosts(2);
    for ok in [true, false, false, false] {
        all.health_checked(START, all.slot(1), ok);
    }
    let failed = "GET /healthz: status 500";
    assert_eq!(lines(&mut all, START, failed), ["unhealthy: GET /healthz: status 500; 1 of 2 hosts left"]);
    all.health_checked(START, all.slot(1), false);
    assert!(lines(&mut all, START, failed).is_empty());
    all.health_checked(START + START, all.slot(1), true);
    let passed = "GET /healthz passed";
    assert_eq!(lines(&mut all, START + START, passed), ["healthy after 1s: GET /healthz passed; 2 of 2 hosts left"]);
}

#[test]
fn failures_eject_and_a_second_ejection_is_a_change() {
    let mut all = hosts(2);
    fail(&mut all, 0, 5);
    let cause = "status 503";
    assert_eq!(
        lines(&mut all, START, cause),
        ["ejected for 10s: 5 failures in a row, the last: status 503; 1 of 2 hosts left"]
    );
    // The other one has to stay.
    fail(&mut all, 1, 5);
    assert_eq!(
        lines(&mut all, START, cause),
        [
            "failing: 5 failures in a row, the last: status 503; not ejected, since too few hosts would be left; 0 of 2 hosts left",
            "all 2 hosts are down: attempts go to all of them",
        ]
    );
    let later = START + Nanos::from_secs(10);
    all.began(0);
    all.ended(later, all.slot(0), HostOutcome::Failed, None);
    assert_eq!(
        lines(&mut all, later, cause),
        ["ejected again for 20s: 6 failures in a row, the last: status 503; 0 of 2 hosts left"]
    );
    let end = later + Nanos::from_secs(20);
    all.ended(end, all.slot(0), HostOutcome::Ok, None);
    all.ended(end, all.slot(1), HostOutcome::Ok, None);
    assert_eq!(
        lines(&mut all, end, "an attempt succeeded"),
        [
            "healthy after 30s: an attempt succeeded; 2 of 2 hosts left",
            "healthy after 30s: an attempt succeeded; 2 of 2 hosts left",
        ]
    );
}

#[test]
fn panic_begins_and_ends() {
    let mut all = hosts(4);
    for host in 0..2 {
        all.health_checked(START, all.slot(host), false);
    }
    assert_eq!(all.changes(START).len(), 2);
    all.health_checked(START, all.slot(2), false);
    assert_eq!(
        lines(&mut all, START, "")[1..],
        ["panic: 1 of 4 hosts left, fewer than panic_threshold: attempts go to all hosts"]
    );
    all.health_checked(START, all.slot(3), false);
    assert_eq!(lines(&mut all, START, "")[1..], ["all 4 hosts are down: attempts go to all of them"]);
    for host in 0..2 {
        all.health_checked(START, all.slot(host), true);
    }
    assert_eq!(lines(&mut all, START, "")[2..], ["panic ended: 2 of 4 hosts left; attempts go to healthy hosts only"]);
}

#[test]
fn an_ejection_by_hand_and_its_end_are_changes() {
    let mut all = hosts(2);
    assert!(all.eject_by_operator(all.slot(0)));
    assert_eq!(lines(&mut all, START, ""), ["ejected by hand; 1 of 2 hosts left"]);
    assert!(!all.eject_by_operator(all.slot(1)));
    assert!(lines(&mut all, START, "").is_empty(), "it was not ejected");
    all.health_checked(START, all.slot(0), true);
    assert_eq!(lines(&mut all, START, "by hand"), ["healthy after 0ns: by hand; 2 of 2 hosts left"]);
}

proptest! {
    /// Replayed, the changes give the conditions.
    #[test]
    fn the_changes_are_all_that_changes(
        steps in prop::collection::vec((0_usize..4, 0_u8..6, 0_u64..9), 1..200),
    ) {
        let mut all = hosts(4);
        let mut down = [false; 4];
        let mut now = Nanos::ZERO;
        for (host, kind, seconds) in steps {
            now += Nanos::from_secs(seconds);
            let slot = all.slot(host);
            match kind {
                0 => all.ended(now, slot, HostOutcome::Ok, None),
                1..=3 => all.ended(now, slot, HostOutcome::Failed, None),
                4 => all.health_checked(now, slot, seconds % 2 == 0),
                _ => { all.eject_by_operator(slot); }
            }
            for change in all.changes(now) {
                let Some(slot) = change.host else { continue };
                let returned = matches!(change.change, ConditionChange::Returned { .. });
                prop_assert_eq!(returned && !down[slot.index], false, "it was not down");
                down[slot.index] = !returned;
                prop_assert_eq!(change.left as usize, 4 - (all.ejected | all.unhealthy | all.failing).count_ones() as usize);
            }
            let expected: Vec<bool> =
                (0..4).map(|host| (all.ejected | all.unhealthy | all.failing) & bit(host) != 0).collect();
            prop_assert_eq!(&down[..], &expected[..]);
            prop_assert!(all.changes(now).is_empty());
        }
    }
}

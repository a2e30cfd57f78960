//! Deal of users to scenarios.

use std::cmp::Ordering;

/// Scenarios of the users of a closed loop, by the users' numbers: each user has one for the whole run.
///
/// The scenarios alternate as evenly as their numbers allow, so that a part of the users, as during a ramp-up, is a
/// mix like all of them. Further users repeat the deal.
#[derive(Clone, Debug)]
pub(super) struct UserDeal(Vec<u32>);

impl UserDeal {
    /// Deal of users to scenarios that have these numbers of them.
    pub(super) fn new(users: &[u64]) -> Self {
        let total: u64 = users.iter().sum();
        let mut dealt = vec![0_u64; users.len()];
        let deal = (1..=total).map(|place| {
            // The scenario that is the furthest behind its share; the first one of equals.
            let behind = |scenario: usize| {
                let (share, has) = (users[scenario], dealt[scenario]);
                i128::from(share) * i128::from(place) - i128::from(has) * i128::from(total)
            };
            let open = (0..users.len()).filter(|scenario| dealt[*scenario] < users[*scenario]);
            let next = open.max_by(|a, b| behind(*a).cmp(&behind(*b)).then(b.cmp(a)).then(Ordering::Equal));
            let next = next.unwrap_or(0);
            dealt[next] += 1;
            u32::try_from(next).unwrap_or(0)
        });
        Self(deal.collect())
    }

    /// Scenario of a user by its number in the load.
    pub(super) fn scenario(&self, user: u64) -> u32 {
        let place = usize::try_from(user % (self.0.len().max(1) as u64)).unwrap_or(0);
        self.0.get(place).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(users: &[u64]) {
        let deal = UserDeal::new(users);
        let total: u64 = users.iter().sum();
        let mut seen = vec![0_u64; users.len()];
        for user in 0..total {
            let scenario = deal.scenario(user);
            assert_eq!(scenario, deal.scenario(user + total));
            seen[scenario as usize] += 1;
            for (seen, share) in seen.iter().zip(users) {
                let fair = *share as f64 * (user + 1) as f64 / total as f64;
                assert!((*seen as f64 - fair).abs() < users.len() as f64, "{users:?}: {seen} of {fair}");
            }
        }
        assert_eq!(seen, users);
    }

    #[test]
    fn each_scenario_has_its_users_and_each_beginning_is_a_mix() {
        for a in 1..12 {
            check(&[a]);
            for b in 1..12 {
                check(&[a, b]);
                for c in 1..12 {
                    check(&[a, b, c]);
                    check(&[c, 1, b, a]);
                }
            }
        }
    }

    #[test]
    fn scenarios_alternate() {
        let deal = UserDeal::new(&[4, 2]);
        assert_eq!((0..6).map(|user| deal.scenario(user)).collect::<Vec<_>>(), [0, 1, 0, 0, 1, 0]);
    }
}

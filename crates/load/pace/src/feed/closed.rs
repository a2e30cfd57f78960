//! Users of a closed loop on one thread.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::DueRequest;
use crate::schedule::{LoadStage, ScheduledArrival};
use crate::shard::Shard;
use crate::user_stages::UserStages;
use crate::users::Users;
use weir_base::nanos::Nanos;

/// Users of a closed loop on one thread.
#[derive(Clone, Debug)]
pub struct ClosedFeed {
    users: Users,
    /// Users of this thread, and the first of them that has not started.
    ours: Shard,
    next_user: u64,
    /// Remaining requests of each started user, by its local number.
    remaining: Vec<u64>,
    /// Their sum; `MAX` without a limit.
    remaining_sum: u64,
    /// Users that pause after a failed connection, the earliest first: all pauses are equally long.
    paused: VecDeque<(Nanos, u32)>,
    /// Requests of the agent that this thread may still send.
    permits: Range<u64>,
    /// Numbers of the agent's requests in the whole load.
    numbers: Shard,
    until: Nanos,
    /// Users over time, if their number changes.
    staged: Option<StagedUsers>,
}

/// Users of a thread whose number changes over time.
#[derive(Clone, Debug, Default)]
struct StagedUsers {
    stages: UserStages,
    /// End of each started user, by its local number; earlier after a change, until it is computed anew.
    ends: Vec<Nanos>,
    /// Users that have ended and may start again.
    ended: BTreeSet<u32>,
    /// Start of the next user: of the lowest number, since users start in this order.
    next_start: Option<Nanos>,
}

impl ClosedFeed {
    /// Users of thread `index` of `of` threads of an agent with this shard. They send until `until`, as long as there
    /// are permits ([`Self::grant`]).
    pub fn new(users: Users, until: Nanos, agent: Shard, index: u64, of: u64) -> Self {
        let ours = agent.split(index, of);
        let local = ours.count(users.count);
        Self {
            users,
            ours,
            next_user: ours.first(),
            remaining: Vec::with_capacity(usize::try_from(local).unwrap_or(0)),
            remaining_sum: 0,
            paused: VecDeque::new(),
            permits: 0..0,
            numbers: agent,
            until,
            staged: None,
        }
    }

    /// Limits the active users to the number of these stages.
    pub fn in_stages(mut self, stages: UserStages) -> Self {
        self.set_stages(stages, Nanos::ZERO);
        self
    }

    fn set_stages(&mut self, stages: UserStages, now: Nanos) {
        self.users.count = self.users.count.max(stages.peak());
        let mut staged = self.staged.take().unwrap_or_default();
        staged.stages = stages;
        staged.ends.clear();
        staged.ends.resize(self.remaining.len(), Nanos::ZERO);
        self.staged = Some(staged);
        self.find_next_start(now);
    }

    /// Replaces the users over time; those that are above their number end with their requests.
    pub(super) fn change(&mut self, stages: &[LoadStage], until: Nanos, now: Nanos) {
        self.until = until;
        self.set_stages(UserStages::new(stages.to_vec()), now);
    }

    pub(super) fn pause(&mut self, user: u32, until: Nanos) {
        self.paused.push_back((until, user));
    }

    /// Finds the next user to start, from `now` on.
    fn find_next_start(&mut self, now: Nanos) {
        let Some(staged) = &mut self.staged else { return };
        let user = match staged.ended.first() {
            Some(user) => self.ours.nth(u64::from(*user)),
            None => self.next_user,
        };
        staged.next_start = staged.stages.active(user, now).map(|active| active.start);
    }

    /// Starts the next user, if its time has come.
    fn start_staged(&mut self, now: Nanos) -> Option<u32> {
        let staged = self.staged.as_mut()?;
        if staged.next_start.is_none_or(|at| at > now) {
            return None;
        }
        let again = staged.ended.first().copied();
        let number = again.map_or(self.next_user, |user| self.ours.nth(u64::from(user)));
        let active = staged.stages.active(number, now).filter(|active| active.start <= now);
        let user = active.map(|active| match again {
            Some(user) => {
                staged.ended.pop_first();
                staged.ends[user as usize] = active.end;
                user
            }
            None => {
                staged.ends.push(active.end);
                self.next_user = self.next_user.saturating_add(self.ours.step());
                let loops = self.users.loops.unwrap_or(u64::MAX);
                self.remaining.push(loops);
                self.remaining_sum = self.remaining_sum.saturating_add(loops);
                u32::try_from(self.remaining.len() - 1).unwrap_or(u32::MAX)
            }
        });
        self.find_next_start(now);
        user
    }

    /// Whether a started user goes on; it ends if its number is above that of users.
    fn goes_on(&mut self, user: u32, now: Nanos) -> bool {
        let Some(staged) = &mut self.staged else { return true };
        let Some(end) = staged.ends.get_mut(user as usize) else { return false };
        if now < *end {
            return true;
        }
        let active = staged.stages.active(self.ours.nth(u64::from(user)), now).filter(|active| active.start <= now);
        if let Some(active) = active {
            *end = active.end;
            // An ended one whose connection asks again has started again.
            if staged.ended.remove(&user) {
                self.find_next_start(now);
            }
            return true;
        }
        staged.ended.insert(user);
        self.find_next_start(now);
        false
    }

    /// Remaining permits; the caller grants more before they run out.
    pub fn permits_remaining(&self) -> u64 {
        self.permits.end - self.permits.start
    }

    /// Whether a user has requests left to send, so that a permit would be used.
    pub fn has_demand(&self) -> bool {
        let is_endless = self.staged.is_some() && self.users.loops.is_none();
        is_endless || self.next_user < self.users.count || self.remaining_sum > 0
    }

    /// Replaces the permits.
    pub fn grant(&mut self, permits: Range<u64>) {
        self.permits = permits;
    }

    pub(super) fn due(&mut self, now: Nanos) -> Option<DueRequest> {
        if now >= self.until {
            // Users that should have started before it do not come any more.
            self.stop();
            return None;
        }
        while let Some(&(until, user)) = self.paused.front()
            && until <= now
        {
            self.paused.pop_front();
            if let Some(start) = self.next_on(user, now) {
                return Some(start);
            }
        }
        if self.staged.is_some() {
            let user = self.start_staged(now)?;
            return self.next_on(user, now);
        }
        if self.next_user >= self.users.count || self.users.start(self.next_user) > now {
            return None;
        }
        let user = u32::try_from(self.remaining.len()).unwrap_or(u32::MAX);
        let loops = self.users.loops.unwrap_or(u64::MAX);
        self.remaining.push(loops);
        self.remaining_sum = self.remaining_sum.saturating_add(loops);
        self.next_user = self.next_user.saturating_add(self.ours.step());
        self.next_on(user, now)
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        if self.permits.is_empty() {
            return None;
        }
        let start = match &self.staged {
            Some(staged) => staged.next_start,
            None => (self.next_user < self.users.count).then(|| self.users.start(self.next_user)),
        };
        let pause = self.paused.front().map(|(until, _)| *until);
        start.into_iter().chain(pause).filter(|t| *t < self.until).min()
    }

    #[inline]
    pub(super) fn next_on(&mut self, user: u32, now: Nanos) -> Option<DueRequest> {
        if !self.goes_on(user, now) {
            return None;
        }
        let left = self.remaining.get_mut(user as usize)?;
        if *left == 0 || now >= self.until {
            return None;
        }
        let number = self.numbers.nth(self.permits.next()?);
        *left -= 1;
        // Without a limit it never ends.
        self.remaining_sum = if self.users.loops.is_some() { self.remaining_sum - 1 } else { u64::MAX };
        Some(DueRequest { arrival: ScheduledArrival { intended: now, number }, user })
    }

    pub(super) fn stop(&mut self) {
        self.until = Nanos::ZERO;
        self.paused.clear();
    }
}

//! What is no overload: a gate that has no time, stalls, and callers in a closed loop.

use std::cmp::Reverse;

use super::{Kind, Simulation};
use crate::decide::Nanos;
use crate::simulate::call::{Call, Place};
use crate::simulate::gate::{How, Id};
use crate::simulate::world::Whose;

impl Simulation<'_> {
    /// The closed loop, and the beat of gates that may be late.
    pub(super) fn begin(&mut self) {
        for user in 0..self.world.callers.users {
            // Connections are made one after the other.
            self.calls_again(Nanos(u64::from(user) * 20_000));
        }
        if self.world.gate_cost > Nanos::ZERO || self.world.stalls.iter().any(|stall| stall.whose == Whose::Gates) {
            self.events.push(Reverse((self.pulse.beat(Nanos::ZERO, &self.lost), Id::MAX, 0, Kind::Beat)));
        }
    }

    pub(super) fn stall(&mut self) {
        for stalls in &mut self.stalls {
            if stalls.from() > self.now {
                continue;
            }
            let (from, to) = stalls.take();
            match stalls.whose() {
                Whose::Gates => self.free_at = self.free_at.max(to),
                Whose::Upstream => {
                    self.stalled += to - from;
                    self.stalls_until = self.stalls_until.max(to);
                }
            }
        }
    }

    /// Something comes to a gate, which has time for it or has not.
    pub(super) fn reaches_gate(&mut self, id: Id, serial: u32, kind: Kind) {
        if self.inbox.is_empty() && self.free_at <= self.now {
            self.at_gate(id, serial, kind);
        } else {
            self.inbox.push_back((id, serial, kind));
        }
    }

    pub(super) fn turn(&mut self) {
        if let Some((id, serial, kind)) = self.inbox.pop_front() {
            self.at_gate(id, serial, kind);
        }
    }

    fn at_gate(&mut self, id: Id, serial: u32, kind: Kind) {
        if kind == Kind::Beat {
            let next = self.pulse.beat(self.now, &self.lost);
            self.events.push(Reverse((next, Id::MAX, 0, Kind::Beat)));
            return;
        }
        let Some(call) = self.calls.same(id, serial) else { return };
        let call = *call;
        if self.pulse.beats() {
            self.free_at = self.free_at.max(self.now + self.world.gate_cost);
            self.gates[call.gate as usize].paused(self.pulse.lost(self.now, &self.lost));
        }
        match kind {
            Kind::Arrives => self.arrives(id),
            Kind::Answered if call.place == Place::Running => {
                self.record.answered(self.now, &call);
                self.calls.get(id).place = Place::Over;
                self.ended(&call, How::Answered);
                self.calls.settle(id);
                self.heed();
                self.again(&call);
            }
            Kind::Refused if call.place == Place::Running => {
                self.ended(&call, How::Refused);
                self.refused(id, None);
                self.heed();
            }
            Kind::Overdue if call.place == Place::Waiting => self.overdue(id, serial, &call),
            Kind::Deadline => self.over(id, &call),
            _ => {}
        }
    }

    /// One of the closed loop calls after `wait`.
    fn calls_again(&mut self, wait: Nanos) {
        // They have draws of their own.
        let number = (1 << 40) + self.looped;
        self.looped += 1;
        let id = self.new_call(number, true);
        let serial = self.calls.get(id).serial;
        self.events.push(Reverse((self.now + wait, id, serial, Kind::Retry)));
    }

    /// It is over: one of the closed loop calls again.
    pub(super) fn again(&mut self, call: &Call) {
        if call.looped {
            self.calls_again(self.world.callers.think);
        }
    }
}

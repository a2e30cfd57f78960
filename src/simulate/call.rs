//! One try of a caller, while anybody knows of it.

use super::gate::Id;
use crate::decide::Nanos;
use crate::decide::admit::{Arrival, Priority};

/// Where a try is, for its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has not started yet.
    Ahead,
    /// It waits at its gate.
    Waiting,
    /// It is at its replica.
    Running,
    /// Nobody waits for it.
    Over,
}

/// Where a try is, for its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    None,
    Queued,
    Slot,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Tells it from others that had the same place before.
    pub(super) serial: u32,
    pub(super) place: Place,
    pub(super) work: Work,
    pub(super) priority: Priority,
    pub(super) spread: u8,
    /// Which call this is a try of, and which try; the first is 0. All dice of it are thrown by these.
    pub(super) number: u64,
    pub(super) retry: u32,
    /// How long 99 % take less than if nobody waits, as the upstream was when it came.
    pub(super) unhindered: Nanos,
    pub(super) gate: u32,
    pub(super) replica: u32,
    pub(super) start: Nanos,
    /// Until then the caller waits.
    pub(super) deadline: Nanos,
    /// The same as the gate knows it.
    pub(super) told: Nanos,
    pub(super) began: Nanos,
    pub(super) beside: u32,
    /// Which of the callers' kinds it is.
    pub(super) kind: u8,
    /// Whether it is one of the closed loop.
    pub(super) looped: bool,
    /// How long the upstream had stalled, ever, when it began with this.
    pub(super) stalled: Nanos,
}

impl Call {
    /// The most retries that have dice of their own.
    pub(super) const RETRIES: u32 = 31;

    pub(super) fn draw(&self) -> u64 {
        self.number * u64::from(Self::RETRIES + 1) + u64::from(self.retry)
    }

    pub(super) fn arrival(&self) -> Arrival {
        Arrival { deadline: self.told, priority: self.priority, spread: self.spread }
    }
}

/// All of them; places are used again.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Call>,
    free: Vec<Id>,
    serial: u32,
}

impl Calls {
    pub(super) fn add(&mut self, mut call: Call) -> Id {
        self.serial = self.serial.wrapping_add(1);
        call.serial = self.serial;
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = call;
            return id;
        }
        self.all.push(call);
        (self.all.len() - 1) as Id
    }

    pub(super) fn get(&mut self, id: Id) -> &mut Call {
        &mut self.all[id as usize]
    }

    /// The call that had this place then, if it has it still.
    pub(super) fn same(&mut self, id: Id, serial: u32) -> Option<&mut Call> {
        self.all.get_mut(id as usize).filter(|call| call.serial == serial)
    }

    /// Those that are like this.
    #[cfg(test)]
    pub(super) fn count(&self, is: impl Fn(&Call) -> bool) -> u64 {
        self.all.iter().filter(|call| call.serial != 0 && is(call)).count() as u64
    }

    /// Forgets it if nobody knows of it any more.
    pub(super) fn settle(&mut self, id: Id) {
        let call = &mut self.all[id as usize];
        if call.place == Place::Over && call.work == Work::None && call.serial != 0 {
            call.serial = 0;
            self.free.push(id);
        }
    }
}

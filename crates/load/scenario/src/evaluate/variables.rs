//! Variables of users, by slots that are known once a file is compiled.

use std::collections::BTreeMap;

use crate::value::Value;

/// Place of a variable in a [`VariableTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableSlot(pub u32);

/// Names of variables and their slots, filled while a file is compiled.
#[derive(Clone, Debug, Default)]
pub struct VariableNames(BTreeMap<String, u32>);

impl VariableNames {
    /// Slot of a name, which is added if it is new.
    pub fn slot(&mut self, name: &str) -> VariableSlot {
        if let Some(slot) = self.get(name) {
            return slot;
        }
        let slot = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.insert(name.to_owned(), slot);
        VariableSlot(slot)
    }

    /// Slot of a known name.
    pub fn get(&self, name: &str) -> Option<VariableSlot> {
        self.0.get(name).copied().map(VariableSlot)
    }

    /// All names with their slots, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, VariableSlot)> {
        self.0.iter().map(|(name, slot)| (name.as_str(), VariableSlot(*slot)))
    }
}

/// Values of a user's variables, by slot.
#[derive(Clone, Debug, Default)]
pub struct VariableTable(Vec<Option<Value>>);

impl VariableTable {
    /// Table for these names, without values.
    pub fn new(names: &VariableNames) -> Self {
        Self(vec![None; names.0.len()])
    }

    /// Makes the values those of another table, in the same memory.
    pub(crate) fn assign(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// Sets a value.
    pub fn set(&mut self, slot: VariableSlot, value: Value) {
        if let Some(place) = self.0.get_mut(slot.0 as usize) {
            *place = Some(value);
        }
    }

    /// Value of a slot, if it has one.
    pub fn get(&self, slot: VariableSlot) -> Option<&Value> {
        self.0.get(slot.0 as usize)?.as_ref()
    }
}

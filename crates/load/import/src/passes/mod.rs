//! Passes over all steps of an import, after the readers.

mod correlate;
mod filter;
mod form_secrets;
mod inline;
mod occurrence;
mod origins;
mod secrets;
mod success;
mod undefined;
mod verify;

use crate::collection::Import;
use crate::kind::ImportKind;
use crate::names::VariableNameTable;
use crate::settings::ImportSettings;

pub(crate) use self::inline::inline;
pub(crate) use self::undefined::find_undefined;
pub(crate) use self::verify::verify;

/// Runs the passes in their order: what a later one replaces, an earlier one must still find.
pub(crate) fn run(import: &mut Import, settings: &ImportSettings, names: &mut VariableNameTable) {
    filter::choose(import, &settings.only);
    if settings.correlate {
        correlate::correlate(import, names);
    }
    success::assert(import);
    secrets::hide(import, names);
    origins::add_schemes(import);
    if import.kinds.iter().any(|kind| matches!(kind, ImportKind::Har)) {
        origins::name_origins(import, names);
    }
}

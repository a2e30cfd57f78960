//! Arguments of a run that `weir ui` starts, outside its command line: all users of a machine see those of its processes
//! (`ps`), and a form has headers and passwords. An environment is its owner's.

use std::env;
use std::ffi::OsString;

/// Beginning of what stands for an argument; its number follows.
const PLACEHOLDER: &str = "@form-argument:";
/// Beginning of the name of the variable that has the argument.
const VARIABLE: &str = "WEIR_FORM_ARGUMENT_";

/// Placeholders for these arguments, and the environment that has their values.
pub(super) fn hidden(args: &[String]) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    let numbered = || (0..).zip(args);
    let words = numbered().map(|(number, _): (u64, _)| format!("{PLACEHOLDER}{number}").into()).collect();
    let values = numbered().map(|(number, arg): (u64, _)| (format!("{VARIABLE}{number}").into(), arg.into())).collect();
    (words, values)
}

/// Arguments with the values that placeholders stand for; as many as before.
pub(super) fn resolved(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let value = |arg: &OsString| env::var_os(format!("{VARIABLE}{}", arg.to_str()?.strip_prefix(PLACEHOLDER)?));
    args.into_iter().map(|arg| value(&arg).unwrap_or(arg)).collect()
}

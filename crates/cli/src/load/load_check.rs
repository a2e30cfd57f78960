//! Arguments of a load in other places than the command line: in study files, mix files and forms.

use std::path::Path;

use clap::{Args, Command, FromArgMatches};

use super::LoadArgs;
use super::defaults::study_warnings;
use super::script_flags::study_script;
use weir_base::Nanos;
use weir_load::LoadPlan;
use weir_load::Options;
use weir_load::objectives::Objectives;
use weir_load::program::ProgramOptions;
use weir_load::program::{is_python, is_script};
use weir_request::secret_mask::SecretMask;
use weir_scripts::StudyScripts;

/// Arguments of `weir load`, without the name of the program.
pub(crate) fn command() -> Command {
    LoadArgs::augment_args(Command::new("load")).no_binary_name(true).disable_help_flag(true)
}

/// Names of the flags of `weir load`, without dashes.
pub(crate) fn flags() -> Vec<String> {
    command().get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
}

/// Options of a load from arguments in a study file; and warnings, of what is in a mix file and not used in a study, or
/// probably a mistake.
///
/// # Errors
/// One line with the invalid argument.
pub(crate) fn parse(
    args: &[String],
    folder: &Path,
    scripts: &StudyScripts<'_>,
) -> Result<(Options, Vec<String>), String> {
    let mut read = parse_args(args)?;
    read.script_args.check_unused()?;
    let script = study_script(&mut read, folder, scripts)?;
    let mix = read.request_args.read_scenarios(folder, &check_flags)?;
    let warnings = mix.as_ref().map(study_warnings).unwrap_or_default();
    read.add_mix(mix)?;
    let program = script.map(ProgramOptions::of_script);
    Ok((Options { program, ..read.into_options() }, warnings))
}

/// Checks the arguments of a load as far as it goes without a request, and returns the mask of its secrets. Scripts, and logs that a
/// rate is from, are read when the load starts.
///
/// # Errors
/// One line with the first mistake.
pub(crate) fn check(args: &[String]) -> Result<SecretMask, String> {
    let mut read = parse_args(args)?;
    let mask = read.request_args.secret_mask().with_values(&read.live_args.clone().into_options(None).secrets());
    let is_of_script =
        |arg: &String| arg.starts_with("--scenario=") && (is_python(Path::new(arg)) || is_script(Path::new(arg)));
    if args.iter().any(is_of_script) || read.rate_from_args.is_given() {
        return Ok(mask);
    }
    read.script_args.check_unused()?;
    let mix = read.request_args.read_scenarios(Path::new(""), &check_flags)?;
    let window = read.abort_after.map(Nanos::from);
    let mut objectives = Objectives::of_flags(read.slos.clone(), read.abort.clone(), window)?;
    objectives.slos.extend(mix.iter().flat_map(|mix| mix.slos.iter().cloned()));
    read.add_mix(mix)?;
    let plan = LoadPlan::new(&read.into_options()).map_err(|error| error.to_string())?;
    objectives.check(&plan).map(|()| mask)
}

/// Checks flags in another place than the command line, without the rest of a load.
///
/// # Errors
/// One line with the invalid argument.
pub(crate) fn check_flags(args: &[String]) -> Result<(), String> {
    parse_flags(args).map(|_| ())
}

/// Arguments of flags without a URL.
pub(super) fn parse_flags(args: &[String]) -> Result<LoadArgs, String> {
    let url = ["http://localhost/".to_owned()];
    let read = parse_args(&[&url, args].concat())?;
    read.script_args.check_unused().map(|()| read)
}

fn parse_args(args: &[String]) -> Result<LoadArgs, String> {
    let read = command().try_get_matches_from(args).and_then(|matches| LoadArgs::from_arg_matches(&matches));
    read.map_err(|error| crate::one_line(&error, "load"))
}

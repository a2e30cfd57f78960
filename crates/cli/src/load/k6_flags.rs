//! Flags of scripts of k6.

use std::path::PathBuf;

use clap::Args;

use super::LoadArgs;
use weir_document::units;
use weir_load::program::ScriptOptions;
use weir_scripts::K6Script;

const SCRIPT: &str = "JavaScript (as k6)";

/// Flags of scripts of k6.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct K6Flags {
    /// variable of __ENV of a k6 script; repeatable
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = variable, help_heading = SCRIPT)]
    env: Vec<(String, String)>,
    /// folder in place of the site jslib.k6.io
    #[arg(long, value_name = "FOLDER", help_heading = SCRIPT)]
    js_lib: Option<PathBuf>,
    /// maximum memory of a user's script [default: 256MB]
    #[arg(long, value_name = "SIZE", value_parser = heap_size, help_heading = SCRIPT)]
    js_heap: Option<u64>,
}

fn heap_size(text: &str) -> Result<u64, String> {
    units::size(text).map(|bytes| bytes as u64).ok_or_else(|| "write a size, e.g. 256MB".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl K6Flags {
    /// Checks that nothing is said of a script that is not there.
    ///
    /// # Errors
    /// One line with the flag.
    pub(super) fn check_unused(&self) -> Result<(), String> {
        let given = [
            ("--env", !self.env.is_empty()),
            ("--js-lib", self.js_lib.is_some()),
            ("--js-heap", self.js_heap.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} needs a k6 script; name one with -s FILE.js")),
            None => Ok(()),
        }
    }
}

/// Script of k6 of a load, if there is one, with the load that its options describe.
///
/// # Errors
/// One line with its mistake.
pub(super) fn k6_script(asked: &mut LoadArgs) -> Result<Option<K6Script>, String> {
    let Some(path) = asked.request_args.take_javascript()? else { return Ok(None) };
    if asked.agent_args.has_agents() {
        return Err("--on does not go with a k6 script; it runs in this process".to_owned());
    }
    if asked.once {
        return Err(format!("--once does not go with a k6 script; write weir run {}", path.display()));
    }
    let has_pace = asked.connections.is_some()
        || asked.users.is_some()
        || asked.rate.is_some()
        || asked.stages.is_some()
        || asked.loops.is_some();
    let has_own_load = has_pace || asked.requests.is_some() || asked.duration.is_some();
    let options = ScriptOptions {
        url: asked.request_args.url().to_owned(),
        environment: asked.k6_flags.env.clone(),
        js_lib: asked.k6_flags.js_lib.clone(),
        js_heap: asked.k6_flags.js_heap,
        ..ScriptOptions::of_file(path)
    };
    let script = K6Script::open(&options, has_own_load)?;
    if has_own_load && !has_pace {
        // As in k6, the users stay those of the script.
        asked.users = script.users();
    }
    Ok(Some(script))
}

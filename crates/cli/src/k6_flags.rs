//! Flags of scripts of k6.

use std::path::PathBuf;

use clap::Args;

use weir_document::units;
use weir_load::program::ScriptOptions;

const SCRIPT: &str = "JavaScript (as k6)";

/// Flags of scripts of k6.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct K6Flags {
    /// set a variable in a k6 script's __ENV; repeatable
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = variable, help_heading = SCRIPT)]
    env: Vec<(String, String)>,
    /// load modules of jslib.k6.io from this folder
    #[arg(long, value_name = "FOLDER", help_heading = SCRIPT)]
    js_lib: Option<PathBuf>,
    /// limit the script's memory per user [default: 256MB]
    #[arg(long, value_name = "SIZE", value_parser = heap_size, help_heading = SCRIPT)]
    js_heap: Option<u64>,
}

fn heap_size(text: &str) -> Result<u64, String> {
    units::size(text).map(|bytes| bytes as u64).ok_or_else(|| "write a size, e.g. 256MB".to_owned())
}

/// Flags of the results of a k6 script.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct K6ResultFlags {
    /// write the summary of a k6 script to FILE, as k6 does
    #[arg(long, value_name = "FILE", help_heading = SCRIPT)]
    pub(crate) summary_export: Option<PathBuf>,
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
    pub(crate) fn check_unused(&self) -> Result<(), String> {
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

    /// Script of a file with these flags, before the URL `url`.
    pub(crate) fn script(&self, path: PathBuf, url: &str) -> ScriptOptions {
        ScriptOptions {
            url: url.to_owned(),
            environment: self.env.clone(),
            js_lib: self.js_lib.clone(),
            js_heap: self.js_heap,
            ..ScriptOptions::of_file(path)
        }
    }
}

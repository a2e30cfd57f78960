//! Commit of the code that a run measures.

use std::env;
use std::process::{Command, Stdio};

/// Variables of services for continuous integration with the commit that they build.
const VARIABLES: [&str; 5] = ["GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION", "CIRCLE_SHA1"];

/// Commit of the working folder, with a `+` if there are changes; else what the environment says. Empty if neither is
/// known: the run need not be of a repository.
pub(super) fn current() -> String {
    let described = Command::new("git")
        .args(["describe", "--always", "--exclude=*", "--dirty=+", "--abbrev=12"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let commit = described.ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let of_variables = || VARIABLES.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    commit.filter(|commit| !commit.is_empty()).or_else(of_variables).unwrap_or_default()
}

//! Completions in real shells, and manual pages in a real formatter.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use weir_testing::Weir;

/// Whether a program is there; a missing one is printed, and in CI it is a fault.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(found || !is_ci, "{program} is missing; scripts/setup.sh test installs it");
    if !found {
        eprintln!("skipped: {program} is missing");
    }
    found
}

fn script(weir: &Weir, shell: &str) -> String {
    let output = weir.run(&["completions", shell]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{shell}");
    let name = format!("weir.{shell}");
    weir.write(&name, output.stdout);
    name
}

/// What bash offers for the last of these words.
fn completed_by_bash(weir: &Weir, words: &[&str]) -> BTreeSet<String> {
    let code = "source weir.bash && complete -p weir >/dev/null || exit 1
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        _weir weir \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-c", code, "bash"]).args(words).current_dir(weir.path(""));
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let weir = Weir::new();
    script(&weir, "bash");
    let of = |words: &[&str]| completed_by_bash(&weir, words);
    assert_eq!(of(&["weir", "cap"]), BTreeSet::from(["capacity".to_owned()]));
    assert_eq!(of(&["weir", "load", "--ramp"]), BTreeSet::from(["--ramp-up".to_owned()]));
    assert!(of(&["weir", "serve", "--"]).contains("--log-format"));
    assert!(of(&["weir", "serve", "work", "--mi"]).contains("--mix"));
    assert_eq!(of(&["weir", "load", "--log-format", "j"]), BTreeSet::from(["json".to_owned()]));
    let commands = of(&["weir", ""]);
    assert!(commands.contains("doctor") && commands.contains("gate"), "{commands:?}");
    assert!(!commands.iter().any(|command| command.contains("agent") || command.contains("guard")), "{commands:?}");
}

#[test]
fn other_shells_accept_their_scripts() {
    let weir = Weir::new();
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let name = script(&weir, shell);
        if has(shell) {
            let output = Command::new(shell).arg(check).arg(weir.path(&name)).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        }
    }
    if has("fish") {
        let ask = "source weir.fish; complete -C 'weir load --ramp'";
        let output = Command::new("fish").args(["--no-config", "-c", ask]).current_dir(weir.path("")).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("--ramp-up"), "{output:?}");
    }
    for (shell, candidate) in [("powershell", "'load'"), ("elvish", "cand load ")] {
        let name = script(&weir, shell);
        assert!(weir.read(&name).contains(candidate), "{shell}");
    }
}

#[test]
fn an_unknown_shell_is_one_line() {
    let output = Weir::new().run(&["completions", "tcsh"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.one_line().contains("tcsh") && output.stderr.contains("bash"), "{output:?}");
}

#[test]
fn every_command_has_a_manual_page_that_a_formatter_takes_without_a_warning() {
    let weir = Weir::new();
    let output = weir.run(&["man", "pages/man1"]);
    assert_eq!(output.code, 0, "{output:?}");
    let files: BTreeSet<String> = fs::read_dir(weir.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["weir.1", "weir-load.1", "weir-serve-work.1", "weir-send-list.1", "weir-doctor.1"] {
        assert!(files.contains(page), "{files:?}");
    }
    assert!(!files.iter().any(|file| file.contains("agent") || file.contains("help")), "{files:?}");
    assert!(output.stderr.contains(&format!("{} pages", files.len())), "{output:?}");
    if !has("groff") {
        return;
    }
    for file in &files {
        let mut command = Command::new("groff");
        command.args(["-man", "-Tutf8", "-ww", "-rLL=100n", "-P-cbou"]).arg(weir.path(&format!("pages/man1/{file}")));
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{file}: {errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"] {
            assert!(text.contains(heading), "{file}: no {heading}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_one_line() {
    let weir = Weir::new();
    weir.write("file", "");
    let output = weir.run(&["man", "file/man1"]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.one_line().contains("cannot write file/man1"), "{output:?}");
}

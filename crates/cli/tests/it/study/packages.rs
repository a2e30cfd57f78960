//! Python packages of a variant.

use std::fs;

use super::{cells, failure, json};
use weir_testing::{Running, Weir};

/// Script that writes a Python package as a wheel.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("answer-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("answer.py", "ANSWER = 42\n")
    wheel.writestr("answer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n")
    wheel.writestr("answer-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("answer-1.0.dist-info/RECORD", "")
"#;

#[test]
fn python_packages_of_a_variant_are_installed_once_and_for_it_alone() {
    let weir = Weir::new();
    weir.write("wheel.py", WHEEL);
    let made = std::process::Command::new("python3").arg("wheel.py").current_dir(weir.path(".")).status();
    assert!(made.unwrap().success());
    let wheel = weir.path("answer-1.0-py3-none-any.whl");
    let text = format!(
        r#"
repeats = 1
[variants.with]
kind = "client"
command = ["python", "-c", "import answer; print('{{\"n\": %d}}' % answer.ANSWER)"]
requirements = ["{}"]
[variants.without]
kind = "client"
command = ["python3", "-c", "import answer"]
[metrics]
n = "higher"
"#,
        wheel.display()
    );
    weir.write("study.toml", text);
    let run = || {
        let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet", "--rerun"]);
        // Neither the network nor this machine's cache.
        command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
        Running::new(&mut command).finish()
    };
    let found = json(&run());
    assert_eq!(cells(&found, "with")[0]["metrics"]["n"], 42.0, "{found:#}");
    assert!(failure(&found, "without").1.contains("No module named 'answer'"), "{found:#}");
    // The saved environment is reused: without the wheel it could not be made again.
    fs::remove_file(&wheel).unwrap();
    let again = json(&run());
    assert_eq!(cells(&again, "with")[0]["metrics"]["n"], 42.0, "{again:#}");
}

#[test]
fn packages_that_cannot_be_installed_fail_the_variant() {
    let weir = Weir::new();
    weir.write(
        "study.toml",
        "repeats = 1\n[variants.a]\nkind = \"client\"\ncommand = \"true\"\nrequirements = [\"./no-such.whl\"]\n",
    );
    let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet"]);
    command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
    let output = Running::new(&mut command).finish();
    assert_eq!(output.code, 2, "nothing could be measured: {output:?}");
    let (reason, lines) = failure(&json(&output), "a");
    assert!(
        reason.contains("set-up: cannot install its packages") && lines.contains("no-such.whl"),
        "{reason}: {lines}"
    );
}

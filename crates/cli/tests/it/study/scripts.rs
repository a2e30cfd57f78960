//! Loads of a study whose users a script drives.

use serde_json::Value;

use super::{GOOD, SHORT, assert_tidy, cells, json, study};
use weir_testing::Weir;

const SCRIPT: &str = r#"
n = 0
request = function()
    n = n + 1
    if n % 3 == 0 then return wrk.format(nil, "/nothing") end
    return wrk.format()
end
"#;

fn with_script(name: &str) -> String {
    SHORT.replace("connections = 2", &format!("connections = 2\nscenario = \"{name}\""))
}

#[test]
fn a_lua_script_drives_the_users_of_a_load_in_each_round() {
    let weir = Weir::new();
    weir.write("mixed.lua", SCRIPT);
    let output = study(&weir, &format!("{}\n{GOOD}", with_script("mixed.lua")));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let found = json(&output);
    let cells = cells(&found, "good");
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["failure"], Value::Null, "{cell:#}");
        let load = &cell["loads"][0];
        assert!(load["rate_per_s"].as_f64().unwrap() > 0.0, "{load:#}");
        // One request of three has no good response.
        let errors = load["errors"].as_f64().unwrap();
        assert!((errors - 1.0 / 3.0).abs() < 0.05, "{load:#}");
    }
    assert_tidy(&weir.path("results"));
}

#[test]
fn what_is_wrong_with_a_script_is_one_line_before_the_study() {
    let weir = Weir::new();
    let wrong = |text: &str| {
        let output = study(&weir, text);
        assert_eq!(output.code, 2, "{output:?}");
        output.one_line().to_owned()
    };
    let line = wrong(&format!("{}\n{GOOD}", with_script("none.lua")));
    assert!(line.contains("none.lua': no such file"), "{line}");
    let line = wrong(&format!("{}\n{GOOD}", with_script("none.py")));
    assert!(line.contains("none.py': no such file"), "{line}");
    weir.write("mixed.lua", SCRIPT);
    let line = wrong(&format!("{}check = \"status == 200\"\n{GOOD}", with_script("mixed.lua")));
    assert!(line.contains("--check cannot be used with a Lua script"), "{line}");
}

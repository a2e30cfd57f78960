//! Variables: what is given is what is sent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Server, Weir};

/// Values that a number, a boolean or a quotation could be made of.
const VALUES: [&str; 20] = [
    "01069",
    "1.10",
    "1e5",
    "+49301234",
    "007",
    "0",
    "-0",
    "1.",
    ".5",
    "1E+2",
    "00000000000000000000001",
    "0x10",
    "1_000",
    "NaN",
    "Infinity",
    "true",
    "null",
    "9007199254740993",
    "12345678901234567890",
    "1.0000000000000000001",
];

#[test]
fn a_value_keeps_its_text_however_it_is_given() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("step.hurl", format!("POST {}\nX-Value: {{{{v}}}}\n`v={{{{v}}}}`\n", server.url("/")));
    for value in VALUES {
        let given = format!("v={value}");
        weir.write("v.env", format!("{given}\n"));
        weir.write("mix.toml", format!("[variables]\nv = \"{value}\"\n\n[[scenario]]\nfile = \"step.hurl\"\n"));
        for args in [
            &["run", "step.hurl", "--variable", &given][..],
            &["run", "step.hurl", "--secret", &given],
            &["run", "step.hurl", "--variables-file", "v.env"],
            &["load", "-s", "step.hurl", "--variable", &given, "-n", "1"],
            &["load", "-s", "mix.toml", "-n", "1"],
        ] {
            let output = weir.run(args);
            assert_eq!(output.code, 0, "{args:?}: {output:?}");
            let seen = server.seen();
            let last = seen.last().unwrap();
            assert_eq!(last.header("X-Value"), Some(value), "{args:?}");
            assert_eq!(String::from_utf8_lossy(&last.body), format!("v={value}"), "{args:?}");
        }
    }
}

#[test]
fn values_of_an_import_come_back_from_their_file_as_they_were() {
    let (weir, server) = (Weir::new(), Server::hello());
    let values =
        ["0042", "1e5", "1.10", "\"quoted\"", "+49301234", " x ", "a\nb", "it's $'x'", "$'x'", "back\\slash\nn"];
    for value in values {
        let quoted = value.replace('\'', "'\\''");
        weir.write("call.sh", format!("curl {} --data-urlencode 'password={quoted}'\n", server.url("/")));
        let import = weir.run(&["import", "call.sh", "-o", "call.hurl", "--force"]);
        assert_eq!(import.code, 0, "{import:?}");
        // A value that is no secret is text of the scenario.
        let has_file = weir.path("call.env").exists();
        let file: &[&str] = if has_file { &["--variables-file", "call.env"] } else { &[] };
        let output = weir.run(&[&["run", "call.hurl"], file].concat());
        assert_eq!(output.code, 0, "{value:?}: {output:?}");
        let seen = server.seen();
        let body = String::from_utf8_lossy(&seen.last().unwrap().body).replace('+', " ");
        let sent = body.strip_prefix("password=").unwrap();
        let expected: String = value
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
                b' ' => " ".to_owned(),
                other => format!("%{other:02X}"),
            })
            .collect();
        assert_eq!(sent.replace("%20", " "), expected, "{value:?}");
        let _ = std::fs::remove_file(weir.path("call.env"));
    }
}

#[test]
fn a_number_is_compared_and_indexed_as_one_whatever_its_text() {
    let server = Server::start(|_| weir_testing::Reply::ok("{\"price\": 1.1, \"id\": 7, \"list\": [1, 2, 3]}"));
    let weir = Weir::new();
    let checks = "jsonpath \"$.price\" == {{price}}\njsonpath \"$.id\" == {{id}}\njsonpath \"$.id\" < {{more}}\n\
                  jsonpath \"$.list\" nth {{at}} == 2\n";
    weir.write("step.hurl", format!("GET {}\nHTTP 200\n[Asserts]\n{checks}", server.url("/")));
    let mut args = vec!["run", "step.hurl"];
    for given in ["price=1.10", "id=007", "more=08", "at=01"] {
        args.extend(["--variable", given]);
    }
    let output = weir.run(&args);
    assert_eq!(output.code, 0, "{output:?}");
}

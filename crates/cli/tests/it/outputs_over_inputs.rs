//! No output is written over a file that a command reads, whatever names the file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::symlink;

use weir_testing::{Server, Weir};

/// A folder with a scenario, its body, a mix with data, jobs, a log and a command for an import.
fn folder(server: &Server) -> Weir {
    let weir = Weir::new();
    let url = server.url("/");
    weir.write("shop.hurl", format!("POST {url}\nfile,body.json;\n"));
    weir.write("body.json", "{\"a\": 1}");
    weir.write("users.csv", "user\nada\n");
    weir.write("setup.hurl", format!("POST {url}\nfile,setup.json;\n"));
    weir.write("setup.json", "{}");
    let mix = "[[scenario]]\nfile = \"shop.hurl\"\nusers = 1\ndata = \"users.csv\"\n\n[load]\nduration = \"1s\"\n";
    weir.write("mix.toml", mix);
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    weir.write("out.invalid", "{\"id\":\"a\"}\n");
    weir.write("keys.txt", "alice=secret-key-0123456789\n");
    weir.write("access.log", super::replay::even(5, 1));
    weir.write("order.sh", format!("curl {url} --data-binary @body.json\n"));
    weir
}

#[test]
fn an_output_that_is_an_input_under_any_name_is_rejected_and_the_input_stays() {
    let server = Server::hello();
    let url = server.url("/");
    let cases: &[(&[&str], &str)] = &[
        (&["load", "-s", "shop.hurl", "-n", "1", "--out", "body.json"], "body.json"),
        (&["load", "-s", "shop.hurl", "-n", "1", "--jtl", "body.json"], "body.json"),
        (&["load", "-s", "shop.hurl", "-n", "1", "--out-jsonl", "body.json"], "body.json"),
        (&["load", "-s", "mix.toml", "--html", "users.csv"], "users.csv"),
        (&["load", "-s", "mix.toml", "--junit", "shop.hurl"], "shop.hurl"),
        (&["load", "-s", "mix.toml", "--summary-md", "body.json"], "body.json"),
        (&["load", "-s", "shop.hurl", "--setup", "setup.hurl", "-n", "1", "--csv", "setup.json"], "setup.json"),
        (&["load", "-s", "shop.hurl", "-n", "1", "--out", "hard"], "shop.hurl"),
        (&["load", "-s", "shop.hurl", "-n", "1", "--out", "soft"], "shop.hurl"),
        (&["load", &url, "-n", "1", "-b", "@body.json", "--out", "hard-body"], "body.json"),
        (&["capacity", "-s", "shop.hurl", "--slo", "p99<1s", "--out", "body.json"], "body.json"),
        (&["replay", "access.log", "--target", &url, "--out", "hard-log"], "access.log"),
        (&["send", "jobs.jsonl", "--url", &url, "--out", "hard-jobs"], "jobs.jsonl"),
        (&["send", "jobs.jsonl", "--url", &url, "--keys-file", "keys.txt", "--out", "keys.txt"], "keys.txt"),
        (&["send", "jobs.jsonl", "--url", &url, "-b", "@body.json", "--out", "body.json"], "body.json"),
        (&["send", "out.invalid", "--url", &url, "--out", "out"], "out.invalid"),
        (&["import", "order.sh", "--force", "--to", "json", "-o", "body.json"], "body.json"),
        (&["import", "order.sh", "--force", "-o", "hard-order.hurl"], "order.sh"),
    ];
    for (args, input) in cases {
        let weir = folder(&server);
        for (name, link) in [
            ("shop.hurl", "hard"),
            ("body.json", "hard-body"),
            ("access.log", "hard-log"),
            ("jobs.jsonl", "hard-jobs"),
            ("order.sh", "hard-order.hurl"),
        ] {
            fs::hard_link(weir.path(name), weir.path(link)).unwrap();
        }
        symlink(weir.path("shop.hurl"), weir.path("soft")).unwrap();
        let before = weir.read(input);
        let output = weir.run(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.stderr.contains("which is an input"), "{args:?}: {output:?}");
        assert_eq!(weir.read(input), before, "{args:?}");
    }
}

#[test]
fn rows_of_data_are_not_written_over_a_file_of_that_name() {
    let weir = Weir::new();
    let plan = include_str!("plan_with_rows.jmx");
    weir.write("plan.jmx", plan);
    weir.write("rows.txt", "ada;1\n");
    weir.write("shop.csv", "mine\n");
    let output = weir.run(&["import", "plan.jmx", "-o", "shop.hurl"]);
    assert!(output.code == 2 && output.stderr.contains("shop.csv is there already; add --force"), "{output:?}");
    assert_eq!(weir.read("shop.csv"), "mine\n");
    let output = weir.run(&["import", "plan.jmx", "-o", "shop.hurl", "--force"]);
    assert_eq!((output.code, weir.read("shop.csv").as_str()), (0, "user,number\nada,1\n"), "{output:?}");
}

#[test]
fn columns_that_a_file_of_rows_has_in_its_first_line_are_not_asked_for() {
    let weir = Weir::new();
    let plan = include_str!("plan_with_rows.jmx").replace("user,number", "").replace("rows.txt", "users.csv");
    weir.write("plan.jmx", plan);
    weir.write("users.csv", "user;number\nada;1\n");
    let output = weir.run(&["import", "plan.jmx", "-o", "shop.hurl"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!output.stderr.contains("fill in user"), "{output:?}");
    assert!(!weir.path("shop.env").exists() || !weir.read("shop.env").contains("user="), "{output:?}");
}

#[test]
fn an_access_log_is_not_appended_to_the_configuration() {
    let weir = Weir::new();
    let text = "[upstreams.a]\nurls = [\"http://127.0.0.1:1\"]\n\n[[routes]]\nmatch = { path = \"/{*rest}\" }\nupstream = \"a\"\n";
    weir.write("gate.toml", text);
    fs::hard_link(weir.path("gate.toml"), weir.path("access.log")).unwrap();
    let output = weir.run(&["gate", "--config", "gate.toml", "--access-log", "access.log"]);
    assert!(output.code == 2 && output.stderr.contains("it is an input; give another file"), "{output:?}");
    assert_eq!(weir.read("gate.toml"), text);
}

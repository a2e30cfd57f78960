//! Calls of gRPC in `weir load`: schemas from files, mixes of several methods, and the commands of the page.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_serve::grpc::PROTO;
use weir_testing::{Serving, Weir};

fn url(serving: &Serving, method: &str) -> String {
    format!("grpc://{}/weir.test.v1.Test/{method}", serving.address)
}

#[test]
fn a_schema_is_from_files_where_the_server_has_no_reflection() {
    let serving = Serving::start(&["grpc", "--no-reflection"]);
    let weir = Weir::new();
    let echo = url(&serving, "Echo");
    let why = weir.run(&["load", &echo, "-n", "1"]);
    let address = &serving.address;
    let words = format!("the server {address} has no reflection; give the schema by --proto FILE or --protoset FILE");
    assert_eq!((why.code, why.one_line()), (2, words.as_str()));
    std::fs::create_dir_all(weir.path("api/weir")).unwrap();
    weir.write("api/weir/test.proto", PROTO);
    weir.write("set.bin", weir_serve::grpc::schema().unwrap().to_descriptor_set());
    for flags in [
        &["--proto", "weir/test.proto", "--proto-path", "api"][..],
        &["--proto", "api/weir/test.proto", "--proto-path", "api"],
        &["--proto", "api/weir/test.proto"],
        &["--proto", "./api/weir/../weir/test.proto"],
        &["--proto", &weir.path("api/weir/test.proto").to_string_lossy()],
        &["--protoset", "set.bin"],
    ] {
        let run = weir.load(&echo, &[&["-b", r#"{"text": "a"}"#, "-n", "10", "-c", "2"], flags].concat());
        assert_eq!(run.status["OK"], 10, "{flags:?}");
    }
    weir.write("broken.proto", "syntax = \"proto3\";\nmessage A { strin a = 1; }\n");
    weir.write("lost.proto", "syntax = \"proto3\";\nimport \"other.proto\";\n");
    for (flags, words) in [
        (&["--proto", "none.proto"][..], "--proto: no file 'none.proto'; give the folder of imports with --proto-path"),
        (&["--proto", "broken.proto"], "--proto: broken.proto:2:13"),
        (&["--proto", "lost.proto"], "other.proto"),
        (&["--protoset", "broken.proto"], "--protoset broken.proto: not a descriptor set"),
        (&["--protoset", "none.bin"], "cannot read 'none.bin'"),
        (&["--proto", "broken.proto", "--protoset", "set.bin"], "--proto and --protoset cannot be combined"),
        (&["--proto-path", "api"], "--proto-path is for the files of --proto"),
    ] {
        let output = weir.run(&[&["load", &echo, "-n", "1"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(words), "{words}: {output:?}");
    }
}

#[test]
fn a_mix_has_several_methods_with_their_shares_and_data() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    weir.write("names.csv", "name\nana\nbob\n");
    let mix = |scenarios: &str| {
        format!("[load]\nbase_url = \"grpc://{}\"\nusers = 3\nrequests = 60\n{scenarios}", serving.address)
    };
    let echo = "[[scenario]]\ncall = \"/weir.test.v1.Test/Echo\"\nmessage = '{\"text\": \"{{name}}\"}'\ndata = \"names.csv\"\n";
    let denied =
        "[[scenario]]\ncall = \"weir.test.v1.Test/Echo\"\nmessage = '{\"status\": {\"code\": 7}}'\nname = \"denied\"\n";
    let mirror = "[[scenario]]\ncall = \"/weir.test.v1.Test/Mirror\"\nweight = 2\n";
    weir.write("calls.toml", mix(&[echo, denied, mirror].concat()));
    let output = weir.run(&["load", "-s", "calls.toml", "--format", "json"]);
    let run = output.json();
    let names: Vec<&str> = run.steps.iter().map(|step| step.scenario.as_str()).collect();
    assert_eq!(names, ["Echo", "denied", "Mirror"]);
    assert!(
        run.steps.iter().all(|step| step.requests > 0) && run.steps[2].requests > run.steps[0].requests,
        "{:?}",
        run.steps
    );
    let denials = run.steps[1].requests;
    assert_eq!((run.steps[1].status["PERMISSION_DENIED"], run.failures["PERMISSION_DENIED"]), (denials, denials));
    assert_eq!((run.requests.ok, run.status["OK"]), (60 - denials, 60 - denials));
    assert!(run.target.url.ends_with(&format!(" at grpc://{}", serving.address)), "{}", run.target.url);
    // One of reflection: a load asks once for a service, however many of its methods it calls.
    assert_eq!(serving.get("/stats").json()["calls"].as_u64(), Some(61));
    let streams = "[[scenario]]\ncall = \"/weir.test.v1.Test/List\"\nmessage = '{\"count\": 4}'\n";
    weir.write("streams.toml", mix(&[streams, mirror].concat()));
    let run = weir.run(&["load", "-s", "streams.toml", "--format", "json"]).json();
    assert_eq!((run.requests.ok, run.streams.unwrap().events), (60, 4 * run.steps[0].requests + run.steps[1].requests));
    weir.write("visit.hurl", "GET /\n");
    for (scenarios, words) in [
        ("[[scenario]]\ncall = \"/weir.test.v1.Test/Ecko\"\n", "did you mean 'Echo'?"),
        (
            "[[scenario]]\ncall = \"/weir.test.v1.Test/Echo\"\nmessage = '{\"txt\": 1}'\n",
            "unrecognized field name 'txt'",
        ),
        ("[[scenario]]\ncall = \"/a.B/C\"\nfile = \"visit.hurl\"\n", "file and call cannot be combined"),
        ("[[scenario]]\nmessage = \"{}\"\nfile = \"visit.hurl\"\n", "a message without call"),
        (
            "[[scenario]]\ncall = \"/weir.test.v1.Test/Echo\"\n[[scenario]]\nfile = \"visit.hurl\"\n",
            "write a file for each",
        ),
    ] {
        weir.write("wrong.toml", mix(scenarios));
        let output = weir.run(&["load", "-s", "wrong.toml"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output:?}");
    }
    weir.write("nowhere.toml", "[[scenario]]\ncall = \"/a.B/C\"\n");
    let output = weir.run(&["load", "-s", "nowhere.toml", "-n", "1"]);
    assert!(output.code == 2 && output.one_line().contains("has no host"), "{output:?}");
}

/// Commands of a page with a grpc URL of the test server, in a form that takes a second.
fn commands_of_page(page: &str, serving: &Serving) -> Vec<String> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap().replace("\\\n", " ");
    let ours = text.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| line.contains("weir.test.v1"));
    let short = |line: &str| {
        let line = line.replace("localhost:50051", &serving.address);
        [
            ("-d 30s", "-d 300ms"),
            ("--users 100", "--users 4 -d 300ms"),
            ("--users 20", "--users 4 -d 300ms"),
            (" p99<50ms", " p99<50s"),
        ]
        .iter()
        .fold(line, |line, (long, short)| line.replace(long, short))
    };
    ours.map(short).filter(|line| line.starts_with("weir ")).collect()
}

#[test]
fn the_commands_of_the_page_work() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    weir.write("names.csv", "name\nana\nbob\n");
    let commands = commands_of_page("load/grpc.md", &serving);
    assert!(commands.len() >= 4, "{commands:?}");
    for command in commands {
        // Arguments in single quotes hold no other ones.
        let words = command.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect(),
        });
        let words: Vec<String> = words.skip(1).collect();
        let output = weir.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(matches!(output.code, 0 | 1) && !output.stdout.contains("failed in"), "{command}: {output:?}");
        assert!(
            output.stdout.contains(" 0 failed") || output.stdout.contains("passed: 1 step"),
            "{command}: {output:?}"
        );
    }
}

#[test]
fn messages_of_a_call_are_sent_at_their_interval_whether_or_not_responses_come() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let all = r#"[{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]"#;
    let interval = ["--message-interval", "20ms", "-n", "6", "-c", "1", "--streams", "3"];
    for further in [&[][..], &["--check", "status == 0"]] {
        for (method, events) in [("Collect", None), ("Chat", Some(24))] {
            let args = [&["-b", all], &interval[..], further].concat();
            let run = weir.load(&url(&serving, method), &args);
            assert_eq!((run.requests.ok, run.streams.map(|streams| streams.events)), (6, events), "{method}");
            // The last one is sent three intervals after the first one.
            assert!(run.response_ms.min.unwrap() >= 59.0, "{method}: {:?}", run.response_ms);
        }
    }
    let together = weir.load(&url(&serving, "Collect"), &["-b", all, "-n", "100", "-c", "1"]);
    assert!(together.response_ms.min.unwrap() < 59.0, "{:?}", together.response_ms);
    let stats = serving.get("/stats").json();
    assert_eq!(stats["status"]["OK"].as_u64().map(|calls| calls >= 124), Some(true), "{stats}");
    // One that waits for its time ends with the load's timeout, and with the server.
    let args = ["-b", all, "--message-interval", "1h", "--timeout", "2s", "-n", "1", "-c", "1", "--format", "json"];
    let run = weir.run(&[&["load", &url(&serving, "Collect")], &args[..]].concat()).json();
    let ended = ["timeout", "DEADLINE_EXCEEDED"].map(|kind| run.failures.get(kind).copied().unwrap_or(0));
    assert_eq!(ended.iter().sum::<u64>(), 1, "{:?}", run.failures);
    for (address, args, words) in [
        (url(&serving, "Echo"), &["--message-interval", "1s"][..], "this one takes one message"),
        (url(&serving, "Collect"), &["--message-interval", "0s"], "--message-interval: invalid time 0"),
        (format!("http://{}/", serving.address), &["--message-interval", "1s"], "are for URLs of gRPC"),
    ] {
        let output = weir.run(&[&["load", &address, "-n", "1"], args].concat());
        assert!(output.code == 2 && output.one_line().contains(words), "{words}: {output:?}");
    }
}

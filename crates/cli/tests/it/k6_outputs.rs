//! What scripts of k6 measure, in the outputs of a load; and certificates of their options.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use weir_measure::Run;
use weir_testing::{Authority, Reply, Server, Weir};

#[test]
fn each_interval_has_the_metrics_of_the_script_so_far() {
    let server = Server::hello();
    let folder = Weir::new();
    let script = "import http from 'k6/http';\nimport { Counter } from 'k6/metrics';\nimport { check, sleep } from 'k6';\n\
        const sold = new Counter('sold');\n\
        export const options = { vus: 1, duration: '2500ms', thresholds: { 'sold{kind:tea}': ['count>0'] } };\n\
        export default () => {\ncheck(http.get(__ENV.HOST), { ok: (r) => r.status === 200 });\n\
        sold.add(2, { kind: 'tea' });\nsold.add(1);\nsleep(0.02);\n};\n";
    folder.write("users.js", script);
    let host = format!("HOST={}", server.url("/"));
    let output =
        folder.run(&["load", "-q", "-s", "users.js", "-e", &host, "--out-jsonl", "lines.jsonl", "-o", "run.json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let lines: Vec<Value> =
        folder.read("lines.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts = |name: &str| {
        let metric = |line: &Value| line["script"].as_array()?.iter().find(|it| it["name"] == name).cloned();
        let found = lines.iter().filter(|line| line["type"] == "interval").filter_map(metric);
        found.map(|metric| metric["values"]["count"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (all, tea) = (counts("sold"), counts("sold{kind:tea}"));
    assert!(all.len() >= 2 && all.windows(2).all(|pair| pair[0] <= pair[1]) && all[0] < all[all.len() - 1], "{all:?}");
    assert!(all.iter().zip(&tea).all(|(all, tea)| (all - tea * 1.5).abs() < 1e-9), "{all:?} {tea:?}");
    let run = Run::from_json(&folder.read("run.json")).unwrap();
    let metrics = run.script.unwrap().metrics;
    let sold = metrics.iter().find(|metric| metric.name == "sold").unwrap();
    assert!(sold.values["count"] >= all[all.len() - 1]);
    assert!(metrics.iter().any(|metric| metric.name == "data_received"), "{metrics:?}");
    assert!(lines.iter().all(|line| line["type"] != "interval" || line["script"] != json!([])));
}

#[test]
fn certificates_of_options_are_shown_and_responses_have_their_version_of_tls() {
    let authority = Authority::new();
    let folder = Weir::new();
    authority.file(&folder, "ca.pem");
    authority.issue("client.test").files(&folder, "client");
    let server = Server::build().tls(authority.service_for_known_clients("127.0.0.1")).start(|_| Reply::ok("hello"));
    let script = |domains: &str| {
        format!(
            "import http from 'k6/http';\nimport {{ check }} from 'k6';\n\
            const [cert, key] = [open('client.pem'), open('client-key.pem')];\n\
            export const options = {{ tlsAuth: [{{ domains: {domains}, cert, key }}],\n\
              thresholds: {{ 'http_reqs{{tls_version:tls1.3,ip:127.0.0.1}}': ['count==3'] }} }};\n\
            export default () => check(http.get(__ENV.HOST), {{\n\
              tls: (r) => r.tls_version === http.TLS_1_3 && r.tls_cipher_suite.startsWith('TLS_AES_'),\n\
              peer: (r) => r.remote_ip === '127.0.0.1' && r.remote_port > 0,\n}});\n"
        )
    };
    let host = format!("HOST=https://127.0.0.1:{}/", server.port());
    for (domains, code, passed) in [("['127.0.0.1']", 0, 3), ("['other.test']", 3, 0)] {
        folder.write("users.js", script(domains));
        let flags = ["load", "-q", "-s", "users.js", "-e", &host, "--cacert", "ca.pem", "-c", "1", "-n", "3"];
        let output = folder.run(&[&flags[..], &["-o", "run.json"]].concat());
        let run = Run::from_json(&folder.read("run.json")).unwrap();
        assert_eq!((output.code, run.requests.ok), (code, passed), "{domains}: {output:?}");
        let checks = run.script.unwrap().checks;
        assert!(checks.iter().all(|check| check.passed == passed), "{domains}: {checks:?}");
    }
}

//! Secrets of k6 scripts: where they come from, and that nothing shows them.

use weir_testing::{Reply, Seen, Server, Weir};

use super::k6_transport::{ONCE, checks, play_in, script};

#[test]
fn secrets_are_sent_and_shown_nowhere() {
    let server = Server::start(|seen: &Seen| Reply::ok(seen.header("x-custom").unwrap_or_default()));
    let folder = Weir::new();
    folder.write("shop.env", "# of the shop\ntoken=k9-very-secret\n");
    let body = script(
        "import secrets from 'k6/secrets';
        export default async () => {
          const token = await secrets.get('token');
          const r = http.get(`${HOST}/${token}`, { headers: { 'X-Custom': token } });
          check(r, { sent: () => r.body.length === 14 });
          console.log(`log: ${token} ${r.body} ${(await secrets.source('default').get('token')) === token}`);
          throw new Error(`with ${token}`);
        };",
    );
    let source = ["-e", "K6_SECRET_SOURCE=file=shop.env"];
    let (output, run) = play_in(&folder, &server.url(""), &body, &[&source[..], &ONCE].concat());
    assert_eq!(checks(&run), (vec![], 1), "{output:?}");
    assert!(server.seen()[0].line().contains("/k9-very-secret "));
    assert!(output.stderr.contains("log: *** *** true"), "{output:?}");
    let report = folder.read("run.json");
    assert!(!format!("{output:?}{report}").contains("k9-very-secret"), "{output:?}{report}");
    assert!(report.contains("with ***"), "{report}");
    // One iteration, shown whole; and variables as a source.
    let host = format!("HOST={}", server.url(""));
    let flags =
        ["run", "users.js", "-v", "-e", &host, "-e", "K6_SECRET_SOURCE=env=SHOP_", "-e", "SHOP_token=k9-of-variables"];
    let output = folder.run(&flags);
    assert!(output.stdout.contains("***") && !format!("{output:?}").contains("k9-of-variables"), "{output:?}");
    assert!(server.seen().iter().any(|seen| seen.header("x-custom") == Some("k9-of-variables")));
}

#[test]
fn sources_of_secrets_that_are_not_there_are_one_line() {
    let server = Server::hello();
    let body = "export default async () => {};";
    for (source, reason) in [
        ("file=none.env", "K6_SECRET_SOURCE: cannot read 'none.env'"),
        ("url=config=a.json", "K6_SECRET_SOURCE: 'url' is not supported"),
        ("vault", "no secret source 'vault'; choose file=FILE"),
    ] {
        let folder = Weir::new();
        folder.write("users.js", script(body));
        let source = format!("K6_SECRET_SOURCE={source}");
        let output = folder.run(&["load", "-s", "users.js", "-e", &format!("HOST={}", server.url("")), "-e", &source]);
        assert_eq!((output.code, output.one_line().contains(reason)), (2, true), "{output:?}");
    }
    let output = Weir::new().run(&["load", "-s", "users.js", "--secret-source", "file=a"]);
    assert!(output.stderr.contains("-e K6_SECRET_SOURCE=file=FILE"), "{output:?}");
}

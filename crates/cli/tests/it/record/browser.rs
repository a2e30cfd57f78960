//! A real Chromium through the recorder: a page logs in and reads a list, with style, script and image.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use weir_testing::{Reply, Running, Seen, Server, Serving, Weir};

use super::{assert_plays, lines};

const PAGE: &str = "<link rel=stylesheet href=/style><img src=/picture><script src=/code></script><p id=x>start</p>";

/// Logs in and reads a list with the token; the browser has the cookie.
const CODE: &str = "(async () => {
    const body = JSON.stringify({user: 'ada', password: 'pw-ada'});
    const headers = {'Content-Type': 'application/json'};
    const login = await (await fetch('/login', {method: 'POST', headers, body})).json();
    const items = await fetch('/items?page=1', {headers: {Authorization: 'Bearer ' + login.token}});
    document.getElementById('x').textContent = 'list ' + items.status;
})()";

fn typed(media_type: &str, more: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n{more}Content-Length: {length}\r\n\r\n{body}"))
}

/// Each login has a token of its own, without which there is no list.
fn respond(seen: &Seen) -> Reply {
    let token = |number: u64| format!("t{number:04}-59ea4717472f1c4b");
    match seen.line().split([' ', '?']).nth(1).unwrap_or_default() {
        "/" => typed("text/html", "", PAGE),
        "/style" => typed("text/css", "", "p {}"),
        "/code" => typed("text/javascript", "", CODE),
        "/login" if seen.body == br#"{"user":"ada","password":"pw-ada"}"# => {
            let token = token(seen.number);
            typed(
                "application/json",
                &format!("Set-Cookie: sid={token}; Path=/; HttpOnly\r\n"),
                &format!("{{\"token\": \"{token}\"}}"),
            )
        }
        "/items" => {
            let given = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or("-");
            let is_own = given.len() == token(0).len() && seen.header("cookie") == Some(&format!("sid={given}"));
            if is_own { typed("application/json", "", "[]") } else { Reply::status(401, "") }
        }
        "/picture" | "/favicon.ico" => typed("image/png", "", ""),
        _ => Reply::status(404, ""),
    }
}

fn chromium() -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let is_there = |name: &&str| {
        let found = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    names.into_iter().find(is_there).map(str::to_owned)
}

/// A way to the recorder for requests to this machine alone: what a browser asks its makers for ends here.
fn only_local(recorder: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let recorder = recorder.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let recorder = recorder.clone();
            thread::spawn(move || pass(stream, &recorder));
        }
    });
    address
}

fn pass(client: TcpStream, recorder: &str) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default();
    let target = target.strip_prefix("http://").unwrap_or(target);
    if !target.starts_with("localhost:") {
        return Ok(());
    }
    let mut service = TcpStream::connect(recorder)?;
    service.write_all(line.as_bytes())?;
    let (mut back, mut client) = (service.try_clone()?, client);
    let returns = thread::spawn(move || {
        let _ = io::copy(&mut back, &mut client);
        client.shutdown(Shutdown::Both)
    });
    let _ = io::copy(&mut reader.by_ref(), &mut service);
    let _ = service.shutdown(Shutdown::Write);
    let _ = returns.join();
    Ok(())
}

/// Opens a page, and returns what it is after its scripts.
fn open(weir: &Weir, chromium: &str, proxy: &str, more: &[String], url: &str) -> String {
    let mut command = Command::new(chromium);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"]);
    command.args(["--disable-extensions", "--virtual-time-budget=20000", "--proxy-bypass-list=<-loopback>"]);
    command.arg(format!("--proxy-server=http://{proxy}"));
    command.arg(format!("--user-data-dir={}", weir.path("profile").display()));
    command.args(more).arg(url).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(&mut command).finish().stdout
}

/// Records a visit, and plays it.
fn record(server: &Server, weir: Weir, flags: &[&str], more: impl Fn(&Weir) -> Vec<String>) {
    let Some(chromium) = chromium() else {
        assert!(std::env::var_os("CI").is_none(), "no Chromium; scripts/setup.sh test-all installs it");
        eprintln!("skipped: no Chromium on this machine; scripts/setup.sh test-all installs it");
        return;
    };
    let recorder = Serving::record_in(weir, &[&["-o", "shop.hurl"], flags].concat());
    let proxy = only_local(&recorder.address);
    let url = server.url("/").replace("127.0.0.1", "localhost");
    let page = open(&recorder.weir, &chromium, &proxy, &more(&recorder.weir), &url);
    assert!(page.contains("list 200"), "{page}");
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        lines(&output).contains(&"shop.hurl: 3 requests of the recording"),
        "{output:?}\n{}",
        weir.read("shop.hurl")
    );
    let hurl = weir.read("shop.hurl");
    assert!(hurl.contains("token: jsonpath \"$.token\"") && hurl.contains("Authorization: Bearer {{token}}"), "{hurl}");
    assert!(hurl.contains("Origin: {{base_url}}\n") && !hurl.contains("Sec-") && !hurl.contains("pw-ada"), "{hurl}");
    for path in ["style", "code", "picture"] {
        assert!(hurl.contains(&format!("# left out: GET {url}{path}\n")), "{hurl}");
    }
    let flags: Vec<&str> = flags.to_vec();
    assert_plays(&weir, 3, &flags);
}

/// With a browser, which `make test` does not install.
mod wide {
    use super::{record, respond, spki_digest};
    use weir_testing::{Authority, Server, Weir};

    #[test]
    fn a_page_in_chromium_is_recorded_and_played() {
        let server = Server::start(respond);
        record(&server, Weir::new(), &[], |_| Vec::new());
    }

    #[test]
    fn a_page_in_chromium_over_https_is_recorded_and_played() {
        let (weir, authority) = (Weir::new(), Authority::new());
        authority.file(&weir, "service.pem");
        let server = Server::build().tls(authority.service("localhost")).start(respond);
        // Trust for this browser alone: the digest of the authority's public key.
        let trust = |weir: &Weir| {
            vec![format!("--ignore-certificate-errors-spki-list={}", spki_digest(&weir.read("ca/ca.pem")))]
        };
        record(&server, weir, &["--cacert", "service.pem"], trust);
    }
}

/// SHA-256 of a certificate's public key, in base64, by OpenSSL.
fn spki_digest(certificate: &str) -> String {
    let run = |args: &[&str], input: &[u8]| {
        let mut command = Command::new("openssl");
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        child.wait().unwrap();
        output
    };
    let public = run(&["x509", "-pubkey", "-noout"], certificate.as_bytes());
    let der = run(&["pkey", "-pubin", "-outform", "der"], &public);
    let digest = run(&["dgst", "-sha256", "-binary"], &der);
    String::from_utf8(run(&["base64"], &digest)).unwrap().trim().to_owned()
}

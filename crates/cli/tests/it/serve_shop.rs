//! `weir serve shop` from outside: one user's way, faults, counts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use weir_testing::{Answer, Raw, Serving};

struct Shopper {
    connection: Raw,
    token: String,
    cookie: String,
}

fn cookie_of(answer: &Answer) -> Option<String> {
    Some(answer.header("set-cookie")?.split(';').next()?.to_owned())
}

fn send(connection: &mut Raw, head: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    connection.send(format!("{head} HTTP/1.1\r\nHost: test\r\n{headers}Content-Length: {length}\r\n\r\n{body}"));
    connection.answer()
}

impl Shopper {
    fn login(shop: &Serving, user: &str) -> Self {
        let mut connection = shop.connect();
        let body = json!({"user": user, "password": format!("pw-{user}")}).to_string();
        let answer = send(&mut connection, "POST /login", "", &body);
        assert_eq!(answer.status, 200);
        let token = answer.json()["token"].as_str().unwrap().to_owned();
        Self { connection, token, cookie: cookie_of(&answer).unwrap() }
    }

    fn send(&mut self, head: &str, body: &str) -> Answer {
        let headers = format!("Authorization: Bearer {}\r\nCookie: {}\r\n", self.token, self.cookie);
        send(&mut self.connection, head, &headers, body)
    }
}

fn stats(shop: &Serving) -> Value {
    shop.get("/stats").json()
}

#[test]
fn a_user_logs_in_buys_and_logs_out_and_all_of_it_is_counted() {
    let shop = Serving::start(&["shop", "--delay", "1ms"]);
    let mut ann = Shopper::login(&shop, "ann");
    let items = ann.send("GET /items?page=3", "").json();
    assert_eq!((items["pages"].as_u64(), items["items"].as_array().unwrap().len()), (Some(3), 10));
    let price = items["items"][0]["price_cents"].as_u64().unwrap();
    let item = ann.send("GET /items/21", "").json();
    assert_eq!(item, json!({"id": 21, "name": "item 21", "price_cents": price}));
    assert_eq!(ann.send("POST /cart", r#"{"item":20}"#).status, 409, "another item than the one that was read");
    let cart = ann.send("POST /cart", r#"{"item":21,"quantity":2}"#);
    assert_eq!((cart.status, cart.json()["total_cents"].as_u64()), (201, Some(2 * price)));
    assert_eq!(ann.send("GET /cart", "").json(), cart.json());
    let paid = ann.send("POST /buy", "");
    assert_eq!((paid.status, paid.json()), (201, json!({"order": 1, "state": "paid", "total_cents": 2 * price})));
    let empty = ann.send("POST /buy", "");
    assert_eq!((empty.status, empty.json()), (409, json!({"error": "empty_cart"})));
    assert_eq!(ann.send("POST /logout", "").status, 204);
    assert_eq!(ann.send("GET /cart", "").json(), json!({"error": "after_logout"}));
    let stats = stats(&shop);
    assert_eq!(stats["statuses"], json!({"200": 4, "201": 2, "204": 1, "401": 1, "409": 2}));
    assert_eq!(stats["violations"], json!({"after_logout": 1, "empty_cart": 1, "skipped_step": 1}));
    for (name, count) in
        [("requests", 10), ("violations_total", 3), ("iterations", 1), ("orders", 1), ("users", 1), ("in_flight", 0)]
    {
        assert_eq!(stats[name], count, "{name}: {stats}");
    }
    assert!(stats["endpoints"]["item"]["service_ms"]["p50"].as_f64().unwrap() >= 1.0, "{stats}");
    assert_eq!(shop.metric("weir_shop_requests_total{endpoint=\"buy\"}"), 2.0);
}

#[test]
fn forms_redirects_and_visitors_work_as_in_a_browser() {
    let shop = Serving::start(&["shop", "--redirect-login"]);
    let mut connection = shop.connect();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let login = send(&mut connection, "POST /login", form, "user=a+b&password=pw-a%20b");
    assert_eq!((login.status, login.header("location")), (302, Some("/home")));
    let cookie = format!("Cookie: other=1; {}\r\n", cookie_of(&login).unwrap());
    let home = send(&mut connection, "GET /home", &cookie, "").json();
    assert_eq!(home["user"], "a b");
    let headers = format!("{cookie}authorization: bearer {}\r\n", home["token"].as_str().unwrap());
    assert_eq!(send(&mut connection, "GET /items", &headers, "").status, 200);
    assert_eq!(send(&mut connection, "GET /items/1", &headers, "").status, 200);
    let cart = send(&mut connection, "POST /cart", &format!("{headers}{form}"), "item=1");
    assert_eq!(cart.json()["items"][0]["quantity"], 1);
    let visit = send(&mut connection, "GET /", "", "");
    assert_eq!((visit.status, visit.header("location")), (302, Some("/home")));
    let home = send(&mut connection, "GET /home", &format!("Cookie: {}\r\n", cookie_of(&visit).unwrap()), "");
    assert_eq!((home.status, home.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(send(&mut connection, "GET /home", "", "").json(), json!({"error": "lost_cookie"}));
}

#[test]
fn requests_that_cannot_be_read_are_violations_and_unknown_paths_are_not() {
    let shop = Serving::start(&["shop", "--items", "1"]);
    let mut ann = Shopper::login(&shop, "ann");
    for (head, body) in [
        ("POST /login", ""),
        ("POST /login", r#"{"user":"ann"}"#),
        ("POST /cart", r#"{"item":1,"quantity":0}"#),
        ("GET /items?page=x", ""),
        ("GET /items/x", ""),
    ] {
        assert_eq!(ann.send(head, body).json(), json!({"error": "bad_request"}), "{head} {body}");
    }
    for (head, status) in
        [("GET /items/1/2", 404), ("GET /items/", 404), ("GET /nosuch", 404), ("GET /buy", 405), ("PUT /cart", 405)]
    {
        assert_eq!(ann.send(head, "").status, status, "{head}");
    }
    let stats = stats(&shop);
    assert_eq!((&stats["requests"], &stats["violations"]), (&json!(6), &json!({"bad_request": 5})));
}

#[test]
fn faults_are_seeded_counted_and_change_nothing_in_the_shop() {
    let run = |seed: &str| {
        let shop = Serving::start(&["shop", "--mix", "error=30%,limited=20%,reset=20%", "--seed", seed]);
        for _ in 0..50 {
            let _ = shop.raw("POST /login HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{\"user\":\"a\",\"password\":\"pw-a\"}   ");
        }
        stats(&shop)
    };
    let first = run("3");
    let count = |name: &str| first["statuses"][name].as_u64().unwrap();
    assert_eq!(count("200") + count("429") + count("500") + first["resets"].as_u64().unwrap(), 50, "{first}");
    assert_eq!(first["logins"], count("200"), "errors reach no shop");
    assert_eq!(first["statuses"], run("3")["statuses"]);
    assert_ne!(first["statuses"], run("4")["statuses"]);
}

#[test]
fn wrong_prices_gzip_and_closes_are_as_said() {
    let shop = Serving::start(&["shop", "--wrong-price", "100%", "--rotate-cookie"]);
    let mut ann = Shopper::login(&shop, "ann");
    let items = ann.send("GET /items", "");
    assert_eq!(ann.send("GET /items/1", "").json(), json!({"error": "lost_cookie"}));
    ann.cookie = cookie_of(&items).unwrap();
    let (list, item) = (items.json(), ann.send("GET /items/1", "").json());
    assert_ne!(item["price_cents"], list["items"][0]["price_cents"]);
    assert_eq!(stats(&shop)["wrong_bodies"], 1);
    let shop = Serving::start(&["shop", "--gzip", "--close", "100%", "--csrf"]);
    let reply = shop.raw("POST /buy HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    let text = String::from_utf8_lossy(&reply);
    assert!(text.contains("content-encoding: gzip\r\n") && text.contains("connection: close\r\n"), "{text}");
}

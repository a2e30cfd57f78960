//! HAR: correlation, think time, static files.

use super::{imported, omissions, value};
use crate::{ImportFile, ImportSettings, import, to_hurl};

const SHOP: &str = r#"{"log": {"version": "1.2", "entries": [
 {"startedDateTime": "2026-01-02T03:04:05.000Z", "time": 100,
  "request": {"method": "POST", "url": "https://shop.example/login", "headers": [{"name": "Host", "value": "shop.example"}],
   "postData": {"mimeType": "application/json", "text": "{\"user\": \"ada\", \"password\": \"pw-ada\"}"}},
  "response": {"status": 200, "headers": [{"name": "Set-Cookie", "value": "sid=s1; Path=/"}],
   "content": {"mimeType": "application/json", "text": "{\"token\": \"t1-0-59ea4717472f1c4b\", \"id\": 123456}"}}},
 {"startedDateTime": "2026-01-02T03:04:05.200Z", "time": 10,
  "request": {"method": "GET", "url": "https://shop.example/app.js", "headers": []},
  "response": {"status": 200, "headers": [], "content": {"mimeType": "text/javascript"}}},
 {"startedDateTime": "2026-01-02T03:04:07.150Z", "time": 100,
  "request": {"method": "POST", "url": "https://shop.example/users/123456/cart", "headers": [
    {"name": "Authorization", "value": "Bearer t1-0-59ea4717472f1c4b"}, {"name": "Cookie", "value": "sid=s1; theme=dark"}],
   "postData": {"mimeType": "application/json", "text": "{\"user\": 123456}"}},
  "response": {"status": 201, "headers": [], "content": {"mimeType": "application/json", "text": "{}"}}}
]}}"#;

#[test]
fn values_of_responses_that_come_again_are_captured() {
    let settings = ImportSettings::default();
    let import = import([ImportFile { name: "shop.har", text: SHOP.into(), kind: None }], &settings).unwrap();
    let expected = "# token: 21 characters of the JSON at $.token that come again in the header Authorization of request 2\n\
        # id: 6 characters of the JSON at $.id that come again in the URL of request 2 and 1 more\n\
        POST {{base_url}}/login\n{\"user\": \"ada\", \"password\": \"{{password}}\"}\nHTTP 200\n[Captures]\n\
        token: jsonpath \"$.token\"\nid: jsonpath \"$.id\"\n\n\
        # left out: GET https://shop.example/app.js\n\
        POST {{base_url}}/users/{{id}}/cart\nAuthorization: Bearer {{token}}\n[Cookies]\ntheme: {{cookie_theme}}\n[Options]\n\
        delay: 2s\n{\"user\": {{id}}}\nHTTP 201\n";
    assert_eq!(to_hurl(&import.scenarios[0]), expected);
    assert_eq!(value(&import, "base_url"), Some("https://shop.example"));
    assert_eq!(omissions(&import), ["shop.har:8: static file: GET https://shop.example/app.js"]);
}

#[test]
fn without_correlation_the_values_stay_or_are_secrets() {
    let settings = ImportSettings { correlate: false, ..ImportSettings::default() };
    let import = import([ImportFile { name: "shop.har", text: SHOP.into(), kind: None }], &settings).unwrap();
    let shown = to_hurl(&import.scenarios[0]);
    assert!(!shown.contains("[Captures]") && shown.contains("/users/123456/cart"), "{shown}");
    assert_eq!(value(&import, "bearer_token"), Some("t1-0-59ea4717472f1c4b"));
}

#[test]
fn what_the_client_knew_before_is_not_captured() {
    // The ID is in the first request already, so that the response only repeats it.
    let text = SHOP.replace("shop.example/login", "shop.example/login?u=123456");
    let shown = to_hurl(&imported(&text).scenarios[0]);
    assert!(!shown.contains("id: jsonpath") && shown.contains("token: jsonpath"), "{shown}");
}

#[test]
fn fields_of_pages_and_redirects_are_captured() {
    let text = r#"{"log": {"entries": [
     {"request": {"method": "GET", "url": "http://h/form"}, "response": {"status": 200,
      "content": {"mimeType": "text/html", "text": "<form><input type=\"hidden\" name=\"csrf\" value=\"c1d2e3f4a5b6\"></form>"}}},
     {"request": {"method": "POST", "url": "http://h/form", "headers": [{"name": "Content-Type", "value": "application/x-www-form-urlencoded"}],
      "postData": {"mimeType": "application/x-www-form-urlencoded", "text": "csrf=c1d2e3f4a5b6&a=1"}},
      "response": {"status": 302, "headers": [{"name": "Location", "value": "/orders/9f8e7d6c5b4a?x=1"}], "content": {}}},
     {"request": {"method": "GET", "url": "http://h/orders/9f8e7d6c5b4a"}, "response": {"status": 200, "content": {}}}]}}"#;
    let shown = to_hurl(&imported(text).scenarios[0]);
    assert!(shown.contains("csrf: xpath \"string(//input[@name='csrf']/@value)\""), "{shown}");
    assert!(shown.contains("[Form]\ncsrf: {{csrf}}\na: 1\n"), "{shown}");
    assert!(shown.contains("orders: header \"Location\" regex \"/orders/([^?&#]+)\""), "{shown}");
    assert!(shown.contains("GET {{base_url}}/orders/{{orders}}\n"), "{shown}");
}

#[test]
fn pages_are_comments_and_what_only_browsers_say_is_dropped() {
    let entry = |page: &str, path: &str, rest: &str| {
        format!(
            "{{\"pageref\": \"{page}\", \"request\": {{\"method\": \"GET\", \"url\": \"http://h:1{path}\", \"headers\": [\
             {{\"name\": \"Sec-Fetch-Mode\", \"value\": \"navigate\"}}, {{\"name\": \"sec-ch-ua\", \"value\": \"x\"}},\
             {{\"name\": \"Origin\", \"value\": \"http://h:1\"}}, {{\"name\": \"Referer\", \"value\": \"http://h:10/a\"}}]}}{rest}}}"
        )
    };
    let gone = entry("b", "/gone", ", \"_leftOut\": \"no response: reset\"");
    let text = format!(
        "{{\"log\": {{\"pages\": [{{\"id\": \"a\", \"title\": \"Start\"}}, {{\"id\": \"b\", \"title\": \"Items\"}}], \"entries\": [{}]}}}}",
        [entry("a", "/", ""), entry("b", "/logo.png", ""), entry("b", "/items", ""), gone].join(",")
    );
    let settings = ImportSettings::default();
    let import = import([ImportFile { name: "x.har", text: (&text).into(), kind: None }], &settings).unwrap();
    let headers = "Origin: {{base_url}}\nReferer: http://h:10/a\n";
    let expected = format!(
        "# page: Start\nGET {{{{base_url}}}}/\n{headers}\n\
         # page: Items\n# left out: GET http://h:1/logo.png\nGET {{{{base_url}}}}/items\n{headers}\n\
         # left out: GET http://h:1/gone: no response: reset\n# GET {{{{base_url}}}}/gone\n# Origin: {{{{base_url}}}}\n\
         # Referer: http://h:10/a\n"
    );
    assert_eq!(to_hurl(&import.scenarios[0]), expected);
}

#[test]
fn an_upload_that_is_recorded_as_bytes_is_sent_as_it_was() {
    let text = r#"{"log": {"entries": [{"request": {"method": "POST", "url": "http://h/up", "headers": [],
      "postData": {"mimeType": "multipart/form-data; boundary=x", "text": "LS14LS0=", "encoding": "base64"}}}]}}"#;
    let shown = to_hurl(&imported(text).scenarios[0]);
    assert_eq!(shown, "POST {{base_url}}/up\nContent-Type: multipart/form-data; boundary=x\nbase64,LS14LS0=;\n");
}

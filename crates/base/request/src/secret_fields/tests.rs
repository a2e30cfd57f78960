//! Notations of secrets, each with what is masked.

use proptest::prelude::*;

use super::*;
use crate::secret_names::is_secret_name;

fn shown(text: &str) -> String {
    let places = secret_places(text, &is_secret_name);
    let mut masked = text.to_owned();
    for SecretPlace { value, quote } in places.iter().rev() {
        let quote = &text[quote.clone()];
        masked.replace_range(value.clone(), &format!("{quote}*{quote}"));
    }
    masked
}

#[test]
fn secrets_are_found_in_all_notations() {
    for (text, expected) in [
        ("http://h/a?token=S&x=1#api_key=S", "http://h/a?token=*&x=1#api_key=*"),
        ("http://h/?to=http%3A%2F%2Fi%2F%3Fsid%3DS%26x%3D1", "http://h/?to=http%3A%2F%2Fi%2F%3Fsid%3D*%26x%3D1"),
        ("http://bob:S@h:x/", "http://*@h:x/"),
        ("http://bob:S/T@h/", "http://*@h/"),
        ("http://S@h/a@b", "http://*@h/a@b"),
        ("'bob:S@h:1'", "'*@h:1'"),
        ("http://h:80/a:b@c", "http://h:80/a:b@c"),
        ("a@b.example", "a@b.example"),
        (r#"{"a": 1, "password" : "S\"T", "pin": 12, "b": 2}"#, r#"{"a": 1, "password" : "*", "pin": "*", "b": 2}"#),
        (r#"{"credentials": {"a": ["S", "}"]}, "b": 2}"#, r#"{"credentials": "*", "b": 2}"#),
        (r#"{"json": "{\"token\":\"S\",\"b\":1}"}"#, r#"{"json": "{\"token\":\"*\",\"b\":1}"}"#),
        (r#"{"token": "S"#, r#"{"token": "*"#),
        ("{'apiKey': 'S', 'b': None}", "{'apiKey': '*', 'b': None}"),
        ("X-Id: 1\r\nX-Auth-Token: S T\r\nB: 2", "X-Id: 1\r\nX-Auth-Token: *\r\nB: 2"),
        ("-H 'Authorization: Bearer S' -b 'key: S'", "-H 'Authorization: *' -b 'key: *'"),
        ("a=1; sid=S; b=2", "a=1; sid=*; b=2"),
        ("user=a&user[password]=S&b=2", "user=a&user[password]=*&b=2"),
        ("token = \"S\"", "token = \"*\""),
        ("<a><password>S</password><b>1</b></a>", "<a><password>*</password><b>1</b></a>"),
        ("<input name=\"csrf_token\" type=hidden value=\"S\">", "<input name=\"csrf_token\" type=hidden value=\"*\">"),
        (
            "--x\r\nContent-Disposition: form-data; name=\"pwd\"\r\n\r\nS\r\n--x--",
            "--x\r\nContent-Disposition: form-data; name=\"pwd\"\r\n\r\n*\r\n--x--",
        ),
        ("<w:Password Type=\"x\">S</w:Password>", "<w:Password Type=\"x\">*</w:Password>"),
        ("<password><![CDATA[S<]]></password>", "<password><![CDATA[*]]></password>"),
        ("<password>\n <v a='b'>S</v></password>", "<password>\n <v a='b'>*</v></password>"),
        ("<password/><b>1</b>", "<password/><b>1</b>"),
        ("['Cookie: S', 'X-Trace: 1']", "['Cookie: *', 'X-Trace: 1']"),
        ("<TOKEN>S</TOKEN>", "<TOKEN>*</TOKEN>"),
        ("invalid value '0' for '--token <TOKEN>': no", "invalid value '0' for '--token <TOKEN>': no"),
        ("<password></password><b>1</b>", "<password></password><b>1</b>"),
        ("<key>password</key>\n<string>S</string>", "<key>password</key>\n<string>*</string>"),
        ("<meta name=\"csrf-token\" content=\"S\">", "<meta name=\"csrf-token\" content=\"*\">"),
        ("<input name=csrf_token value=S>", "<input name=csrf_token value=*>"),
        ("x; name=password\r\n\r\nS\r\n--x--", "x; name=password\r\n\r\n*\r\n--x--"),
        ("x; name*=UTF-8''password\r\n\r\nS\r\n--x--", "x; name*=UTF-8''password\r\n\r\n*\r\n--x--"),
        ("/?name=token&a=1\n\nhello", "/?name=token&a=1\n\nhello"),
        ("{password: 'S', token: T}", "{password: '*', token: T}"),
        ("{token: T, a: 1, password: 'S'}", "{token: *, a: 1, password: '*'}"),
        ("password: S", "password: *"),
        ("password: S\nb: 1", "password: *\nb: 1"),
        ("key: not found", "key: not found"),
        ("no user, key: not found", "no user, key: not found"),
        (r#"{"pass\u0077ord": "S"}"#, r#"{"pass\u0077ord": "*"}"#),
        ("a=1&pass%77ord=S&b=1", "a=1&pass%77ord=*&b=1"),
        ("user%5Bpassword%5D=S", "user%5Bpassword%5D=*"),
        (r#"{"name": "password", "value": "S"}"#, r#"{"name": "password", "value": "*"}"#),
        (r#"{"name": "page", "value": "1"}"#, r#"{"name": "page", "value": "1"}"#),
        (r#"{"value": "S", "name": "password"}"#, r#"{"value": "*", "name": "password"}"#),
        (
            r#"{"value":"S","name":"x-api-key"},{"value":"1","name":"a"}"#,
            r#"{"value":"*","name":"x-api-key"},{"value":"1","name":"a"}"#,
        ),
        (r#"{\"value\":\"S\",\"id\":\"token\"}"#, r#"{\"value\":\"*\",\"id\":\"token\"}"#),
        (r#"{"text": 123456, "field": "pin"}"#, r#"{"text": "*", "field": "pin"}"#),
        (r#"{"value": "1", "name": "page"}"#, r#"{"value": "1", "name": "page"}"#),
        (r#"{"value": "1", "title": "password"}"#, r#"{"value": "1", "title": "password"}"#),
        (r#"{"value": ["1"], "name": "a"}, "value": "#, r#"{"value": ["1"], "name": "a"}, "value": "#),
        (r#"[["a","b"],["password", "S"]]"#, r#"[["a","b"],["password", "*"]]"#),
        (r#"["password", "email", "name"]"#, r#"["password", "email", "name"]"#),
        ("cb=https%3A%2F%2Fbob%3AS%40host%2Fx%40y", "cb=https%3A%2F%2F*%40host%2Fx%40y"),
        ("mail=bob%40host&cb=https%3A%2F%2Fh%2Fa%40b", "mail=bob%40host&cb=https%3A%2F%2Fh%2Fa%40b"),
        (r#"{"token": null, "pin": 0}"#, r#"{"token": null, "pin": 0}"#),
        ("--auth: write USER:PASSWORD", "--auth: write USER:PASSWORD"),
        ("cannot read the key: it is gone", "cannot read the key: it is gone"),
        ("max_tokens=5&monkey=7", "max_tokens=5&monkey=7"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

proptest! {
    #[test]
    fn any_text_has_places_in_order_at_characters(text in r#"[a-z=:@%&,*!"'\\ \n{}\[\]<>/é;token3D40name]{0,60}"#) {
        let mut end = 0;
        for place in secret_places(&text, &|name| name.ends_with('n')) {
            prop_assert!(place.value.start >= end && !place.value.is_empty());
            prop_assert!(text.get(place.value.clone()).is_some() && text.get(place.quote.clone()).is_some());
            end = place.value.end;
        }
    }

    #[test]
    fn a_value_is_found_in_whatever_surrounds_it(before in "[a-z ,.]{0,9}", after in "[a-z ,.]{0,9}", marker in "M[0-9]{4}") {
        for text in [
            format!("{before}?{before}&token={marker}&{after}"),
            format!("{before}{{\"password\":\"{marker}\"}}{after}"),
            format!("{before}\nX-Api-Key: {marker}\n{after}"),
            format!("{before} http://u:{marker}@host/{after}"),
        ] {
            prop_assert!(!shown(&text).contains(&marker), "{text}");
        }
    }
}

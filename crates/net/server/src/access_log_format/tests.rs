//! Formats of the access log: lines of templates and their escapes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;

use super::*;

fn line(format: &str, values: &LogValues<'_>) -> String {
    let AccessLogFormat::Template(template) = AccessLogFormat::parse(format).unwrap() else { panic!("{format}") };
    let mut line = Vec::new();
    template.write(values, &mut line);
    String::from_utf8(line).unwrap()
}

const REQUEST: LoggedRequest<'_> = LoggedRequest {
    client: "192.0.2.1:4711",
    method: "GET",
    target: "/a?b=\"c\"",
    version: "HTTP/1.1",
    status: Some(200),
    bytes: 17,
};

const VALUES: LogValues<'_> = LogValues {
    time_s: 1_786_529_472.25,
    duration_s: 0.012_34,
    request: REQUEST,
    route: Some("/{*rest}"),
    caller: Some("tenant \"a\""),
    tls: Some(("TLSv1.3", Some("api.test"), None)),
    headers: &[],
};

#[test]
fn classic_formats_are_those_of_other_servers() {
    let common = "192.0.2.1 - - [12/Aug/2026:10:11:12 +0000] \"GET /a?b=\\x22c\\x22 HTTP/1.1\" 200 17";
    assert_eq!(line("common", &VALUES), format!("{common}\n"));
    let headers = [Some(b"http://a/".to_vec()), Some("b\u{e4}\n".as_bytes().to_vec())];
    let with = LogValues { headers: &headers, ..VALUES };
    assert_eq!(line("combined", &with), format!("{common} \"http://a/\" \"b\\xC3\\xA4\\x0A\"\n"));
    assert_eq!(line("combined", &VALUES), format!("{common} \"-\" \"-\"\n"));
}

#[test]
fn templates_have_variables() {
    let text =
        "$time_iso8601 ${request_time}s $ssl_protocol $ssl_server_name $ssl_client_s_dn $route $remote_port $msec";
    let expected = "2026-08-12T10:11:12+00:00 0.012s TLSv1.3 api.test - /{*rest} 4711 1786529472.250\n";
    assert_eq!(line(text, &VALUES), expected);
    let gone = LogValues {
        request: LoggedRequest { status: None, client: "unix:", ..REQUEST },
        tls: None,
        route: None,
        ..VALUES
    };
    assert_eq!(line("$remote_addr $remote_port $status $ssl_protocol $route", &gone), "unix: - 499 - -\n");
    assert_eq!(line("$caller", &VALUES), "tenant \\x22a\\x22\n");
    assert_eq!(line("$caller", &LogValues { caller: None, ..VALUES }), "-\n");
    assert_eq!(
        line("$remote_addr", &LogValues { request: LoggedRequest { client: "[::1]:80", ..REQUEST }, ..VALUES }),
        "::1\n"
    );
    let twice = AccessLogFormat::parse("$http_x_a $http_host $http_x_a").unwrap();
    assert_eq!(twice.headers(), ["x-a", "host"]);
    for wrong in ["clf", "$", "$nothing", "$http_", "${status", "$status\nx"] {
        assert!(AccessLogFormat::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn days_are_those_of_the_calendar() {
    for (unix_s, expected) in [
        (0.0, "1970-01-01T00:00:00+00:00"),
        (951_782_400.0, "2000-02-29T00:00:00+00:00"),
        (1_709_251_199.0, "2024-02-29T23:59:59+00:00"),
        (4_107_542_400.0, "2100-03-01T00:00:00+00:00"),
        (-1.0, "1969-12-31T23:59:59+00:00"),
    ] {
        assert_eq!(CivilTime::of(unix_s).iso8601(), expected);
    }
}

proptest! {
    #[test]
    fn no_value_ends_its_field_or_line(value: Vec<u8>) {
        let headers = [Some(value)];
        let values = LogValues { headers: &headers, ..VALUES };
        let line = line("\"$http_x\"", &values);
        prop_assert_eq!(line.matches('"').count(), 2);
        prop_assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn any_text_is_a_format_or_an_error(text: String) {
        let _ = AccessLogFormat::parse(&text);
    }
}

//! Mistakes and warnings of a file.

use super::*;

fn errors_of(text: &str) -> Vec<String> {
    let file = weir_hurl::parse(text).unwrap();
    let result = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut no_files);
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

fn warnings_of(text: &str) -> Vec<String> {
    plan(text).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_are_found_at_once() {
    let text = "GET http://shop/{{tokn}}\nHTTP 200\n[Captures]\ntoken: jsonpath \"$.token\"\n\n\
                GET shop/items\nX: {{tokn}}\n[Options]\nntlm: true\nHTTP 200\n\n\
                POST http://shop\nTransfer-Encoding: chunked\nfile,none.bin;\nHTTP 200\n[Asserts]\n\
                jsonpath \"$.[\" == 1\nbody matches \"(\"\n";
    let errors = errors_of(text);
    let expected = [
        "1:19: expected a variable that is defined before, found 'tokn'; capture it",
        "6:5: expected http:// or https://, found 'shop/items'; write a whole URL",
        "7:6: expected a variable that is defined before, found 'tokn'; did you mean 'token'?",
        "9:1: expected an option that a load supports, found 'ntlm'; authenticate with",
        "13:1: expected a body with a length, found 'Transfer-Encoding: chunked'",
        "14:6: expected the name of a readable file, found 'none.bin', which cannot be read: none.bin is not there",
        "17:",
        "18:",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn variables_without_a_value_are_one_mistake_that_names_each_once() {
    let text = "GET http://{{host}}/a\nX: {{user}}\n\nGET http://{{host}}/{{tokn}}\nHTTP 200\n[Captures]\ntoken: status\n\n\
                GET http://{{host}}/{{tokn}}?{{password}}\n";
    let file = weir_hurl::parse(text).unwrap();
    let errors = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut no_files).unwrap_err();
    let merged: Vec<String> = merge_missing_values(&errors).iter().map(ToString::to_string).collect();
    let expected = [
        "1:14: expected a value for each variable, found none for host (1:14, 4:14, 9:14), user (2:6), tokn (4:23), \
         password (9:32); give --variable host=..., or --data FILE with such a column",
        "9:23: expected a variable that is defined before, found 'tokn'; did you mean 'token'?",
    ];
    assert_eq!(merged, expected);
    let one = errors_of("GET http://{{host}}/\n");
    let text = "1:14: expected a variable that is defined before, found 'host'; capture it in an earlier step, or give \
                --variable host=... or --data FILE";
    assert_eq!(one, [text]);
    let many: String = (0..60).map(|n| format!("GET http://h/{{{{v{}}}}}\n", n / 2)).collect();
    let file = weir_hurl::parse(&many).unwrap();
    let errors = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut no_files).unwrap_err();
    let merged = merge_missing_values(&errors);
    assert!(merged.len() == 1 && merged[0].found.ends_with("10 more"), "{merged:?}");
}

#[test]
fn a_path_needs_a_base_url_and_the_message_says_where_to_give_it() {
    let errors = errors_of("GET /login\n\nGET shop/items\n");
    let expected = [
        "1:5: expected http:// or https://, found '/login'; give the URL before paths on the command line: \
         weir load http://host:port -s FILE",
        "3:5: expected http:// or https://, found 'shop/items'; write a whole URL, such as http://host:port/path",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn the_name_of_a_capture_or_file_does_not_change() {
    let capture = "GET http://shop\nHTTP 200\n[Captures]\n{{newUuid}}: status\n";
    assert_eq!(errors_of(capture).len(), 1, "{:?}", errors_of(capture));
    let file = "POST http://shop\nfile,{{newUuid}};\n";
    assert!(errors_of(file)[0].starts_with("2:8: expected the name of a file without expressions"));
    let bodies = "POST http://shop\n[Form]\na: b\n`x`\n";
    assert!(errors_of(bodies)[0].contains("expected one body"));
    assert!(errors_of("# nothing\n")[0].starts_with("1:1: expected a request"));
}

#[test]
fn an_assert_may_look_for_an_undefined_variable() {
    assert!(warnings_of("GET http://shop\nHTTP 200\n[Asserts]\nvariable \"x\" not exists\n").is_empty());
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let text = "GET http://shop\n[Options]\nverbose: true\ninsecure: true\nhttp2: true\nhttp3: false\nHTTP 200\n\
                [Captures]\na: status\nb: status\n\nGET http://shop/{{b}}\n";
    assert_eq!(
        warnings_of(text),
        [
            "3:1: verbose has no effect in a load",
            "4:1: insecure has no effect on a step; set it for the whole load",
            "5:1: http2 has no effect; requests are sent in HTTP/1.1",
            "9:1: nothing uses the capture a",
        ]
    );
}

//! Properties: what is written is read again, for any text in any place.

use proptest::prelude::*;
use weir_hurl::{Template, TemplatePart};

use crate::{ImportFile, ImportKind, ImportSettings, import, to_curl, to_hurl};

/// Texts with the characters that the notations give a meaning.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{{",
        "}}",
        "{",
        "}",
        "#",
        "\\",
        "`",
        "```",
        "\"",
        "'",
        "\n",
        "\r",
        "\t",
        " ",
        "[",
        "]",
        ":",
        "<",
        "%",
        "ä",
        "\u{1f600}",
        "a",
        "1",
        "file,",
        "HTTP",
        "GET ",
        "[Asserts]",
        "$",
        "&",
        "=",
        "/",
        "?",
        "\u{0}",
        "-",
        "null",
        "x: y",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

/// JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Fixed text of a template, if it has no expressions.
fn fixed(template: &Template) -> String {
    template
        .parts
        .iter()
        .map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Expression(expression) => panic!("{expression}"),
        })
        .collect()
}

fn har(url: &str, header: &str, media_type: &str, body: &str) -> String {
    format!(
        "{{\"log\": {{\"entries\": [{{\"request\": {{\"method\": \"POST\", \"url\": {}, \"headers\": [{{\"name\": \"X-A\", \"value\": {}}}], \
         \"postData\": {{\"mimeType\": {}, \"text\": {}}}}}}}]}}}}",
        quoted(url),
        quoted(header),
        quoted(media_type),
        quoted(body)
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_recorded_request_is_written_and_read_without_a_change(
        path in hostile(), header in hostile(), body in hostile(),
        media_type in prop::sample::select(vec!["application/json", "text/plain", "application/xml", "application/octet-stream"]),
    ) {
        let text = har(&format!("http://h/{path}"), &header, media_type, &body);
        let settings = ImportSettings { correlate: false, ..ImportSettings::default() };
        let import = import([ImportFile { name: "a.har", text: (&text).into(), kind: None }], &settings).unwrap();
        let step = &import.scenarios[0].steps[0];
        prop_assert!(!step.is_disabled, "{:?}", import.omissions);
        let written = to_hurl(&import.scenarios[0]);
        let file = weir_hurl::parse(&written).unwrap();
        prop_assert_eq!(file.entries.len(), 1, "{}", written);
        let request = &file.entries[0].request;
        let expected = request.headers.iter().find(|header| fixed(&header.name) == "X-A").map(|header| fixed(&header.value));
        let clean: String = header.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        prop_assert_eq!(expected.unwrap_or_default(), clean.trim().to_owned(), "{}", written);
        let sent = match request.body.as_ref().map(|body| &body.content) {
            None => String::new(),
            Some(weir_hurl::BodyContent::OneLine(text)) => fixed(text),
            Some(weir_hurl::BodyContent::Json(json)) => {
                // JSON keeps its value; spaces around it are dropped.
                let same: serde_json::Value = serde_json::from_str(&json.to_string()).unwrap();
                prop_assert_eq!(same, serde_json::from_str::<serde_json::Value>(&body).unwrap());
                return Ok(());
            }
            Some(weir_hurl::BodyContent::Block(block)) => match &block.content {
                weir_hurl::BlockContent::Text(text) | weir_hurl::BlockContent::Json(text) | weir_hurl::BlockContent::Xml(text) => fixed(text),
                other => panic!("{other:?}"),
            },
            Some(other) => panic!("{other:?}"),
        };
        prop_assert_eq!(sent, body, "{}", written);
    }

    #[test]
    fn a_command_that_is_written_is_read_as_the_same_request(header in hostile(), body in hostile()) {
        let text = har("http://h/a?b=c", &header, "text/plain", &body);
        let settings = ImportSettings { correlate: false, ..ImportSettings::default() };
        let first = import([ImportFile { name: "a.har", text: (&text).into(), kind: None }], &settings).unwrap();
        prop_assume!(!body.is_empty());
        let command = to_curl(&first).replace("\"${base_url}\"", "'http://h'");
        let again = import([ImportFile { name: "a.sh", text: (&command).into(), kind: Some(ImportKind::Curl) }], &settings).unwrap();
        let (first, again) = (&first.scenarios[0].steps[0].request, &again.scenarios[0].steps[0].request);
        prop_assert_eq!(&first.body, &again.body, "{}", command);
        prop_assert_eq!(first.header("X-A").map(fixed).unwrap_or_default(), again.header("X-A").map(fixed).unwrap_or_default());
    }

    #[test]
    fn nothing_panics_and_what_is_made_is_a_scenario(text in "[ -~\n]{0,200}", kind in 0_usize..ImportKind::ALL.len()) {
        let kind = ImportKind::ALL[kind];
        if let Ok(import) = import([ImportFile { name: "a", text: (&text).into(), kind: Some(kind) }], &ImportSettings::default()) {
            for scenario in &import.scenarios {
                let written = to_hurl(scenario);
                let file = weir_hurl::parse(&written);
                prop_assert!(file.is_ok(), "{}", written);
            }
        }
    }

    /// A recording of `weir record` with damage anywhere: an error with a line of the file, or a scenario.
    #[test]
    fn a_damaged_recording_is_an_error_or_a_scenario(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..12, "[ -~\n]{0,12}"), 0..6),
    ) {
        // The first byte names the kind for the fuzz target.
        let mut text = include_str!("../../../../../fuzz/seeds/import/recording")[1..].to_owned();
        for (at, length, new) in edits {
            let start = at.index(text.len() + 1);
            text.replace_range(start..(start + length).min(text.len()), &new);
        }
        match import([ImportFile { name: "a", text: (&text).into(), kind: Some(ImportKind::Har) }], &ImportSettings::default()) {
            Ok(import) => {
                for scenario in &import.scenarios {
                    let written = to_hurl(scenario);
                    let file = weir_hurl::parse(&written);
                    let active = scenario.steps.iter().filter(|step| !step.is_disabled).count();
                    prop_assert_eq!(file.map(|file| file.entries.len()).ok(), Some(active), "{}", written);
                }
            }
            Err(error) => {
                let lines = text.split('\n').count() + 1;
                prop_assert!((1..=lines).contains(&usize::try_from(error.line).unwrap()), "{}", error);
            }
        }
    }
}

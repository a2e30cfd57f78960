//! Properties: texts survive, bytes never panic, random prompts have their numbers.

use proptest::prelude::*;
use serde_json::json;
use weir_base::rng::SeededRng;

use super::*;
use crate::json_text::push_string;
use crate::word_text::WordText;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z \\\\\"\n\t{}\u{0}-\u{1f}é\u{2028}😀]{0,30}"]
}

/// One file of each kind with these texts as prompts, by the naive way; lines only with texts that are lines.
fn files(texts: &[String]) -> Vec<(DatasetKind, String)> {
    let lines =
        |record: fn(&String) -> Value| texts.iter().map(|text| record(text).to_string()).collect::<Vec<_>>().join("\n");
    let user = |text: &String| json!({"messages": [{"role": "user", "content": text}]});
    let parts = |text: &String| json!({"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]});
    vec![
        (DatasetKind::Strings, lines(|text| json!(text))),
        (DatasetKind::Prompts, lines(|text| json!({"prompt": text}))),
        (DatasetKind::Messages, lines(user)),
        (DatasetKind::Messages, lines(parts)),
        (DatasetKind::Turns, lines(|text| json!({"turns": [text]}))),
        (
            DatasetKind::ShareGpt,
            serde_json::to_string_pretty(
                &texts
                    .iter()
                    .map(|text| json!({"conversations": [{"from": "human", "value": text}]}))
                    .collect::<Vec<_>>(),
            )
            .unwrap_or_default(),
        ),
    ]
}

proptest! {
    #[test]
    fn a_text_is_escaped_as_by_another_writer(text in text()) {
        let mut out = Vec::new();
        push_string(&text, &mut out);
        let read: Option<String> = serde_json::from_slice(&out).ok();
        prop_assert_eq!(read, Some(text));
    }

    #[test]
    fn each_text_of_each_kind_arrives_in_each_api(texts in prop::collection::vec(text(), 1..5)) {
        for (kind, content) in files(&texts) {
            prop_assert_eq!(dataset(&content).kind(), kind);
            for api in LlmApi::ALL {
                let bodies = bodies(settings(api), source(&content));
                for (index, text) in texts.iter().enumerate() {
                    let body = body(&bodies, index as u64);
                    let found = match api {
                        LlmApi::Chat | LlmApi::Messages | LlmApi::Ollama => &body["messages"][0]["content"],
                        LlmApi::Responses => &body["input"][0]["content"],
                        LlmApi::Completions | LlmApi::OllamaGenerate => &body["prompt"],
                        LlmApi::Embeddings => &body["input"],
                        LlmApi::Tgi => &body["inputs"],
                    };
                    prop_assert_eq!(found, &json!(text), "{:?} {:?}: {}", kind, api, body);
                }
            }
        }
    }

    #[test]
    fn lines_of_text_arrive_as_they_are(lines in prop::collection::vec("[a-zé\"\\\\ ]{0,20}", 1..6)) {
        // A first line that is a JSON string makes a file of strings.
        let content = format!("x\n{}", lines.join("\n"));
        let expected: Vec<&str> = content.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let bodies = bodies(settings(LlmApi::Completions), source(&content));
        let found: Vec<Value> = (0..expected.len() as u64).map(|k| body(&bodies, k)["prompt"].clone()).collect();
        prop_assert_eq!(found, expected.iter().map(|line| json!(line)).collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_are_a_data_set_or_an_error_with_a_line_of_the_file(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            "(\\{\"(prompt|messages|turns|conversations|body)\": ?[\\[\\]{}\",a0:]{0,12}\\}?\n?){0,3}".prop_map(String::into_bytes),
        ]
    ) {
        let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let parse = || Dataset::parse("data", bytes.clone(), &mut |_| Err("no file".to_owned()));
        match parse() {
            Ok(set) => {
                for api in LlmApi::ALL {
                    let Ok(again) = parse() else { continue };
                    let prompts = PromptSource::of_dataset(again, PromptOrder::Shuffled, 3);
                    let Ok(bodies) = RequestBodies::new(settings(api), prompts) else { continue };
                    for k in 0..set.count() as u64 {
                        let mut out = Vec::new();
                        let mut state = ConversationState::default();
                        state.begin(k, Nanos::ZERO);
                        bodies.push_body(&state, &mut out);
                        prop_assert!(serde_json::from_slice::<Value>(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
                    }
                }
            }
            Err(error) => prop_assert!((1..=lines).contains(&error.line), "{error}"),
        }
    }

    #[test]
    fn a_shuffled_file_has_each_prompt_once(count in 1..40_usize, seed: u64) {
        let content: String = (0..count).map(|k| format!("{k}x\n")).collect();
        let prompts = PromptSource::of_dataset(dataset(&content), PromptOrder::Shuffled, seed);
        let bodies = bodies(settings(LlmApi::Completions), prompts);
        let mut found: Vec<String> = (0..count as u64).map(|k| body(&bodies, k)["prompt"].to_string()).collect();
        let mut expected: Vec<String> = (0..count).map(|k| format!("\"{k}x\"")).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn numbers_of_tokens_are_parsed_and_in_their_range(a in 1..2000_u64, b in 0..2000_u64, seed: u64) {
        let mut rng = SeededRng::new(seed, 1);
        for text in [format!("{a}+-{b}"), format!("{a} ± {b}")] {
            let count: TokenCount = text.parse().map_err(TestCaseError::fail)?;
            let expected = if b == 0 { TokenCount::Constant(a) } else { TokenCount::Normal { mean: a, deviation: b } };
            prop_assert_eq!(count, expected);
            prop_assert!(count.draw(&mut rng) >= 1);
        }
        let uniform: TokenCount = format!("{a}..{}", a + b).parse().map_err(TestCaseError::fail)?;
        prop_assert!((a..=a + b).contains(&uniform.draw(&mut rng)));
    }
}

#[test]
fn random_prompts_have_their_mean_and_deviation_and_repeat_by_seed() {
    let prompts = |seed| RandomPrompts { input: TokenCount::Normal { mean: 550, deviation: 150 }, turns: 1, seed };
    let text = WordText::new(7);
    let words = |seed, k| {
        let mut out = Vec::new();
        prompts(seed).push_words(&text, k, 0, &mut out);
        String::from_utf8(out).unwrap_or_default()
    };
    let counts: Vec<f64> = (0..2000).map(|k| words(7, k).split(' ').count() as f64).collect();
    let mean = counts.iter().sum::<f64>() / 2000.0;
    let deviation = (counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
    assert!((mean - 550.0).abs() < 15.0 && (deviation - 150.0).abs() < 10.0, "{mean} {deviation}");
    assert_eq!(words(7, 3), words(7, 3));
    assert_ne!(words(7, 3), words(8, 3));
    assert_ne!(words(7, 3), words(7, 4));
    for wrong in ["", "0", "0+-1", "5..4", "..", "a", "5+-", "1e30"] {
        assert!(wrong.parse::<TokenCount>().is_err(), "{wrong}");
    }
}

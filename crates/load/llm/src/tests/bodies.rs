//! Bodies of each API.

use serde_json::json;

use super::*;

const CONVERSATION: &str = r#"{"max_tokens": 9, "messages": [{"role": "system", "content": "s"},
    {"role": "user", "content": "a\"é"}]}"#;

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[test]
fn each_api_has_its_own_body() {
    let content = one_line(CONVERSATION);
    let user = json!({"role": "user", "content": "a\"é"});
    let messages = json!([{"role": "system", "content": "s"}, user]);
    let (text, usage) = ("s\na\"é", json!({"include_usage": true}));
    for (api, expected) in [
        (LlmApi::Chat, json!({"stream_options": usage, "messages": messages, "max_tokens": 9})),
        (LlmApi::Completions, json!({"stream_options": usage, "prompt": text, "max_tokens": 9})),
        (LlmApi::Responses, json!({"input": messages, "max_output_tokens": 9})),
        (LlmApi::Messages, json!({"system": "s", "messages": [user], "max_tokens": 9})),
        (LlmApi::Ollama, json!({"messages": messages, "options": {"num_predict": 9}})),
        (LlmApi::OllamaGenerate, json!({"prompt": text, "options": {"num_predict": 9}})),
    ] {
        let mut expected = expected;
        (expected["model"], expected["stream"]) = (json!("m"), json!(true));
        assert_eq!(body(&bodies(settings(api), source(&content)), 0), expected, "{api:?}");
        expected["stream"] = json!(false);
        expected.as_object_mut().expect("an object").remove("stream_options");
        let plain = RequestSettings { streams: false, ..settings(api) };
        assert_eq!(body(&bodies(plain, source(&content)), 0), expected, "{api:?}");
    }
    let tgi = body(&bodies(RequestSettings { model: None, ..settings(LlmApi::Tgi) }, source(&content)), 0);
    assert_eq!(tgi, json!({"inputs": text, "parameters": {"details": true, "max_new_tokens": 9}}));
    let vectors = body(&bodies(settings(LlmApi::Embeddings), source(&content)), 0);
    assert_eq!(vectors, json!({"model": "m", "input": text}));
    let anthropic = body(&bodies(settings(LlmApi::Messages), source("a")), 0);
    assert_eq!(anthropic["max_tokens"], 1024, "the API demands one");
}

#[test]
fn extra_members_replace_remove_and_join_those_of_the_api() {
    let extra = r#"{"stream_options": null, "temperature": 0.5, "model": "other", "max_tokens": 3, "top_k": 7}"#;
    let chat = RequestSettings {
        extra: extra.to_owned(),
        temperature: Some(1.0),
        ignores_end: true,
        ..settings(LlmApi::Chat)
    };
    let expected = json!({
        "model": "other", "stream": true, "ignore_eos": true, "temperature": 0.5, "max_tokens": 3, "top_k": 7,
        "messages": [{"role": "user", "content": "a"}],
    });
    let prompts = || source("a").with_output("5".parse().ok());
    assert_eq!(body(&bodies(chat, prompts()), 0), expected);
    let ollama = RequestSettings {
        extra: r#"{"options": {"top_k": 7}, "keep_alive": "1m"}"#.to_owned(),
        temperature: Some(1.5),
        ..settings(LlmApi::Ollama)
    };
    let body = body(&bodies(ollama, prompts()), 0);
    assert_eq!(body["options"], json!({"temperature": 1.5, "top_k": 7, "num_predict": 5}));
    assert_eq!(body["keep_alive"], "1m");
}

#[test]
fn settings_that_an_api_lacks_are_errors() {
    let error = |settings: RequestSettings, content: &str| RequestBodies::new(settings, source(content)).map(|_| ());
    let extra = |text: &str| RequestSettings { extra: text.to_owned(), ..settings(LlmApi::Chat) };
    let image = r#"{"prompt": "a", "image": "http://h/a.png"}"#;
    for (settings, content, message) in [
        (extra("[]"), "a", "--extra-body: not an object; write a JSON object, e.g. {\"top_k\": 20}"),
        (extra(r#"{"prompt": 1}"#), "a", "--extra-body: prompt is the prompt; give it with a data set"),
        (
            RequestSettings { ignores_end: true, ..settings(LlmApi::Messages) },
            "a",
            "the API messages has no ignore_eos; it is one of chat and completions",
        ),
        (settings(LlmApi::Completions), image, "data:1: the API completions takes no images"),
        (settings(LlmApi::Ollama), image, "data:1: the API ollama takes no images by URL; write a data: URL or a file"),
    ] {
        assert_eq!(error(settings, content), Err(message.to_owned()));
    }
    assert!(error(extra("{"), "a").is_err_and(|why| why.contains("EOF")));
}

#[test]
fn images_are_in_the_form_of_the_api() {
    let content = r#"{"prompt": "a", "images": ["http://h/a.png", "data:image/png;base64,AQID"]}"#;
    let parts = |api| body(&bodies(settings(api), source(content)), 0);
    assert_eq!(
        parts(LlmApi::Messages)["messages"][0]["content"],
        json!([
            {"type": "text", "text": "a"},
            {"type": "image", "source": {"type": "url", "url": "http://h/a.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQID"}},
        ])
    );
    assert_eq!(
        parts(LlmApi::Responses)["input"][0]["content"],
        json!([
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "http://h/a.png"},
            {"type": "input_image", "image_url": "data:image/png;base64,AQID"},
        ])
    );
    let inline = r#"{"prompt": "a", "image": "data:image/png;base64,AQID"}"#;
    let ollama = body(&bodies(settings(LlmApi::Ollama), source(inline)), 0);
    assert_eq!(ollama["messages"], json!([{"role": "user", "content": "a", "images": ["AQID"]}]));
}

#[test]
fn a_batch_keeps_its_bodies_but_for_what_all_have_in_common() {
    let content = r#"{"custom_id": "1", "url": "/v1/chat/completions", "body": {"model": "x", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}], "max_tokens": 4, "stream": false, "top_p": 1}}"#;
    let own = json!([{"role": "user", "content": [{"type": "text", "text": "a"}]}]);
    let chat = bodies(settings(LlmApi::Chat), source(content));
    let mut expected = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": own, "max_tokens": 4, "top_p": 1,
    });
    assert_eq!(body(&chat, 0), expected);
    assert_eq!(chat.prompts().dataset().and_then(Dataset::batch_url), Some("/v1/chat/completions"));
    let longer = source(content).with_output("8".parse().ok());
    expected["max_tokens"] = json!(8);
    assert_eq!(body(&bodies(settings(LlmApi::Chat), longer), 0), expected);
}

#[test]
fn a_template_is_filled_in_and_has_to_be_json() {
    let template = |text: &str| text.parse::<BodyTemplate>();
    let text = r#"{"in":{"text":"{{prompt}}"},"all":{{ messages }},"m":"{{model}}","n":{{max_tokens}},"s":{{stream}}}"#;
    let with = |text: &str| RequestSettings { template: template(text).ok(), ..settings(LlmApi::Chat) };
    let filled = body(&bodies(with(text), source("a\"b")), 0);
    let all = json!([{"role": "user", "content": "a\"b"}]);
    assert_eq!(filled, json!({"in": {"text": "a\"b"}, "all": all, "m": "m", "n": null, "s": true}));
    let braces = r#"{"{{{":{"a":{"b":"{{prompt}}"}}}"#;
    assert_eq!(body(&bodies(with(braces), source("x")), 0), json!({"{{{": {"a": {"b": "x"}}}));
    assert!(template(r#"{"a": "{{promt}}"}"#).is_err_and(|why| why.contains("no prompt")));
    let error = RequestBodies::new(with("{{prompt}}"), source("x")).map(|_| ());
    assert!(error.is_err_and(|why| why.contains("not JSON once it is filled in")));
}

//! Events as the servers send them.

use proptest::prelude::*;

use crate::llm::{LlmApi, LlmEvent, TokenKind, TokenUsage};

fn read(api: LlmApi, data: &str) -> LlmEvent {
    api.read(data.as_bytes()).unwrap_or_else(|error| panic!("{data}: {error:?}"))
}

fn token(kind: TokenKind) -> LlmEvent {
    LlmEvent { token: Some(kind), ..LlmEvent::default() }
}

fn usage(input: u64, output: u64) -> TokenUsage {
    TokenUsage { input: Some(input), output: Some(output) }
}

#[test]
fn chat_completions() {
    let chunk = |delta: &str| {
        read(LlmApi::Chat, &format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#))
    };
    assert_eq!(chunk(r#"{"role":"assistant","content":""}"#), LlmEvent::default());
    assert_eq!(chunk(r#"{"role":"assistant","content":null}"#), LlmEvent::default());
    assert_eq!(chunk("{}"), LlmEvent::default());
    assert_eq!(chunk(r#"{"content":" weir"}"#), token(TokenKind::Text));
    assert_eq!(chunk(r#"{"content":"\""}"#), token(TokenKind::Text));
    assert_eq!(chunk(r#"{"reasoning_content":"so","content":null}"#), token(TokenKind::Reasoning));
    assert_eq!(chunk(r#"{"reasoning_content":"so","content":"x"}"#), token(TokenKind::Text));
    assert_eq!(chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#), token(TokenKind::ToolCall));
    assert_eq!(chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#), LlmEvent::default());
    let last = read(
        LlmApi::Chat,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":4}}}"#,
    );
    assert_eq!(last, LlmEvent { usage: usage(9, 12), ..LlmEvent::default() });
    assert_eq!(read(LlmApi::Chat, r#"{"choices":[],"usage":null}"#), LlmEvent::default());
    assert!(read(LlmApi::Chat, " [DONE]").is_end);
    assert!(read(LlmApi::Chat, r#"{"error":{"message":"overloaded"}}"#).is_error);
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    assert_eq!(read(LlmApi::Chat, whole), LlmEvent { usage: usage(1, 2), ..token(TokenKind::Text) });
}

#[test]
fn completions_and_embeddings() {
    assert_eq!(read(LlmApi::Completions, r#"{"choices":[{"text":" a","index":0}]}"#), token(TokenKind::Text));
    assert_eq!(read(LlmApi::Completions, r#"{"choices":[{"text":"","index":0}]}"#), LlmEvent::default());
    let whole = r#"{"object":"list","data":[{"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#;
    let expected = TokenUsage { input: Some(8), output: None };
    assert_eq!(read(LlmApi::Embeddings, whole), LlmEvent { usage: expected, ..LlmEvent::default() });
}

#[test]
fn responses() {
    let read = |data: &str| read(LlmApi::Responses, data);
    assert_eq!(
        read(r#"{"type":"response.created","response":{"id":"r","error":null,"usage":null}}"#),
        LlmEvent::default()
    );
    assert_eq!(read(r#"{"type":"response.output_text.delta","delta":"Hi"}"#), token(TokenKind::Text));
    assert_eq!(read(r#"{"type":"response.output_text.delta","delta":""}"#), LlmEvent::default());
    assert_eq!(read(r#"{"delta":"so","type":"response.reasoning_text.delta"}"#), token(TokenKind::Reasoning));
    assert_eq!(read(r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#), token(TokenKind::ToolCall));
    let end = read(r#"{"type":"response.completed","response":{"usage":{"input_tokens":36,"output_tokens":87}}}"#);
    assert_eq!(end, LlmEvent { usage: usage(36, 87), is_end: true, ..LlmEvent::default() });
    assert!(read(r#"{"type":"response.failed","response":{"error":{"code":"server_error"}}}"#).is_error);
    let whole = read(r#"{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"error":null}"#);
    assert_eq!(whole, token(TokenKind::Text));
}

#[test]
fn messages() {
    let read = |data: &str| read(LlmApi::Messages, data);
    let start = read(
        r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}"#,
    );
    assert_eq!(start, LlmEvent { usage: usage(30, 1), ..LlmEvent::default() });
    let empty = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    assert_eq!(read(empty), LlmEvent::default());
    let tool = r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#;
    assert_eq!(read(tool), token(TokenKind::ToolCall));
    let delta = |delta: &str| read(&format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#));
    assert_eq!(delta(r#"{"type":"text_delta","text":"Hello"}"#), token(TokenKind::Text));
    assert_eq!(delta(r#"{"type":"thinking_delta","thinking":"so"}"#), token(TokenKind::Reasoning));
    assert_eq!(delta(r#"{"type":"signature_delta","signature":"E="}"#), LlmEvent::default());
    assert_eq!(delta(r#"{"type":"input_json_delta","partial_json":"{"}"#), token(TokenKind::ToolCall));
    assert_eq!(read(r#"{"type": "ping"}"#), LlmEvent::default());
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#;
    assert_eq!(read(end).usage, TokenUsage { input: None, output: Some(15) });
    assert!(read(r#"{"type":"message_stop"}"#).is_end);
    assert!(read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#).is_error);
    let whole =
        r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"output_tokens":4}}"#;
    assert_eq!(read(whole), LlmEvent { usage: usage(3, 4), ..token(TokenKind::Text) });
}

#[test]
fn ollama() {
    let read = |data: &str| read(LlmApi::Ollama, data);
    assert_eq!(
        read(r#"{"model":"m","message":{"role":"assistant","content":"The"},"done":false}"#),
        token(TokenKind::Text)
    );
    assert_eq!(read(r#"{"model":"m","response":"The","done":false}"#), token(TokenKind::Text));
    let end = read(r#"{"response":"","done":true,"prompt_eval_count":26,"eval_count":298}"#);
    assert_eq!(end, LlmEvent { usage: usage(26, 298), is_end: true, ..LlmEvent::default() });
    assert!(read(r#"{"error":"model not found"}"#).is_error);
}

#[test]
fn text_generation_inference() {
    let read = |data: &str| read(LlmApi::Tgi, data);
    let first = r#"{"index":1,"token":{"id":5,"text":" a","logprob":-0.1,"special":false},"generated_text":null,"details":null}"#;
    assert_eq!(read(first), token(TokenKind::Text));
    let last = r#"{"token":{"text":"</s>","special":true},"generated_text":" a","details":{"generated_tokens":2,"input_length":7}}"#;
    assert_eq!(read(last), LlmEvent { usage: usage(7, 2), is_end: true, ..LlmEvent::default() });
    assert!(read(r#"{"error":"Request failed","error_type":"generation"}"#).is_error);
}

#[test]
fn usage_is_cumulative() {
    let mut all = usage(25, 1);
    all.update(TokenUsage { input: None, output: Some(15) });
    assert_eq!(all, usage(25, 15));
}

#[test]
fn broken_json_is_an_error() {
    for data in ["", "hello", "[]", r#"{"choices":[{"delta":{"content":"a"#, r#"{"choices":[}"#, "{\"a\"", "null"] {
        for api in LlmApi::ALL {
            assert!(api.read(data.as_bytes()).is_err(), "{data} {}", api.name());
        }
    }
}

#[test]
fn an_api_is_known_by_its_path_and_its_path_is_added_once() {
    for api in LlmApi::ALL {
        assert_eq!(api.name().parse(), Ok(api));
        for streams in [true, false] {
            let path = api.path(streams);
            assert_eq!(LlmApi::of_path(path), Some(api));
            for given in ["", "/", path] {
                assert_eq!(api.target_path(given, streams), path, "{given}");
            }
            assert_eq!(api.target_path("/x/?key=1", streams), format!("/x{path}?key=1"));
        }
    }
    assert_eq!(LlmApi::Chat.target_path("/openai/v1/", true), "/openai/v1/chat/completions");
    assert_eq!(LlmApi::of_path("/openai/chat/completions?v=1"), Some(LlmApi::Chat));
    assert_eq!(LlmApi::of_path("/v1"), None);
    assert_eq!("openai-chat".parse(), Ok(LlmApi::Chat));
    assert!("gpt".parse::<LlmApi>().is_err_and(|why| why.starts_with("unknown API 'gpt'; choose chat, ")));
}

proptest! {
    #[test]
    fn any_data_is_read_or_rejected(parts in prop::collection::vec(
        prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"choices\"", "\"delta\"", "\"content\"", "\"type\"", "\"usage\"",
            "\"text\"", "\"\"", "\"", "\\", "1", "null", "\"message\"", "\"token\"", "\"delta\":{", "\"choices\":[{"]), 0..20)) {
        let data = format!("{{{}", parts.concat());
        for api in LlmApi::ALL {
            let read = api.read(data.as_bytes());
            prop_assert!(read.is_err() || data.ends_with('}') || data.contains('}'), "{}", data);
        }
    }
}

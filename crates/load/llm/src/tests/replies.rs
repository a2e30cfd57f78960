//! Texts of responses.

use weir_events::StreamFormat;
use weir_events::llm::LlmApi;

use super::*;

fn reply(api: LlmApi, format: StreamFormat, body: &str) -> String {
    let mut out = Vec::new();
    push_reply_text(api, ReplyParts::Content, format, body.as_bytes(), &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[test]
fn the_text_of_a_stream_is_that_of_all_its_events() {
    for (api, format, body) in [
        (
            LlmApi::Chat,
            StreamFormat::Sse,
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"a\\\"\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n",
        ),
        (
            LlmApi::Completions,
            StreamFormat::Sse,
            "data: {\"choices\":[{\"text\":\"a\\\"\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n",
        ),
        (
            LlmApi::Responses,
            StreamFormat::Sse,
            "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\\\"\"}\n\n\
             data: {\"type\":\"response.reasoning_text.delta\",\"delta\":\"hm\"}\n\n\
             data: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n\
             data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"twice\"}]}]}}\n\n",
        ),
        (
            LlmApi::Messages,
            StreamFormat::Sse,
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\\\"\"}}\n\n\
             data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n\
             data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"b\"}}\n\n",
        ),
        (
            LlmApi::Ollama,
            StreamFormat::JsonLines,
            "{\"message\":{\"content\":\"a\\\"\"}}\n{\"message\":{\"content\":\"b\"},\"done\":true}",
        ),
        (LlmApi::Ollama, StreamFormat::JsonLines, "{\"response\":\"a\\\"\"}\n{\"response\":\"b\"}\n"),
        (
            LlmApi::Tgi,
            StreamFormat::Sse,
            "data:{\"token\":{\"text\":\"a\\\"\",\"special\":false}}\n\ndata:{\"token\":{\"text\":\"b\"}}\n\n\
             data:{\"token\":{\"text\":\"</s>\",\"special\":true},\"generated_text\":\"twice\"}\n\n",
        ),
    ] {
        assert_eq!(reply(api, format, body), "a\\\"b", "{api:?}");
    }
}

#[test]
fn the_text_of_a_response_that_is_not_streamed_is_whole() {
    for (api, body) in [
        (LlmApi::Chat, "{\"choices\":[{\"message\":{\"content\":\"ab\"}}]}"),
        (LlmApi::Completions, "{\"choices\":[{\"text\":\"ab\"}]}"),
        (LlmApi::Responses, "{\"output\":[{\"content\":[{\"text\":\"ab\"}]}]}"),
        (LlmApi::Messages, "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]}"),
        (LlmApi::Ollama, "{\"response\":\"ab\"}"),
        (LlmApi::Tgi, "{\"generated_text\":\"ab\"}"),
    ] {
        assert_eq!(reply(api, StreamFormat::Chunks, body), "ab", "{api:?}");
    }
    assert_eq!(reply(LlmApi::Chat, StreamFormat::Sse, "data: {broken\n\ndata: [1]\n\n"), "");
}

#[test]
fn halves_of_a_surrogate_pair_find_each_other() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude00\"}}]}\n\n";
    let text: String =
        serde_json::from_str(&format!("\"{}\"", reply(LlmApi::Chat, StreamFormat::Sse, body))).unwrap_or_default();
    assert_eq!(text, "\u{1f600}");
}

#[test]
fn all_that_was_generated_has_reasoning_and_calls_of_tools() {
    for (api, body, expected) in [
        (
            LlmApi::Chat,
            "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "hmf{}a",
        ),
        (
            LlmApi::Responses,
            "data: {\"type\":\"response.reasoning_text.delta\",\"delta\":\"hm\"}\n\n\
             data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\"}\n\n\
             data: {\"type\":\"response.reasoning_text.done\",\"delta\":\"twice\"}\n\n\
             data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
            "hm{}a",
        ),
        (
            LlmApi::Messages,
            "data: {\"delta\":{\"thinking\":\"hm\"}}\n\ndata: {\"delta\":{\"partial_json\":\"{}\"}}\n\n\
             data: {\"delta\":{\"text\":\"a\"}}\n\n",
            "hm{}a",
        ),
        (LlmApi::Ollama, "data: {\"message\":{\"thinking\":\"hm\",\"content\":\"a\"}}\n\n", "hma"),
    ] {
        let mut out = Vec::new();
        push_reply_text(api, ReplyParts::Generated, StreamFormat::Sse, body.as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected), "{api:?}");
    }
}

//! Turns of conversations, and whose replies they repeat.

use serde_json::json;

use super::*;

const MESSAGES: &str = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "b", "delay": 1500}, {"role": "assistant", "content": "B"}]}"#;
const SECOND: Nanos = Nanos::SECOND;

fn play(content: &str, replies: ReplySource) -> Vec<(Value, Option<TurnAction>)> {
    let bodies = bodies(settings(LlmApi::Chat), source(content).with_max_turns(3));
    let mut state = ConversationState::default();
    state.begin(0, Nanos::ZERO);
    let mut played = Vec::new();
    loop {
        let messages = body_of(&bodies, &state)["messages"].clone();
        let reply = state.needs_reply(bodies.prompts(), replies).then(|| b"of server".to_vec());
        let action = state.replied(bodies.prompts(), reply, SECOND, Nanos::ZERO);
        played.push((messages, Some(action)));
        if action == TurnAction::End {
            return played;
        }
    }
}

#[test]
fn a_conversation_repeats_the_replies_of_its_data_set_or_of_the_server() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let wait = Some(TurnAction::WaitUntil(Nanos::from_millis(2500)));
    assert_eq!(
        play(MESSAGES, ReplySource::Dataset),
        [(json!([user("a")]), wait), (json!([user("a"), assistant("A"), user("b")]), Some(TurnAction::End))]
    );
    assert_eq!(
        play(MESSAGES, ReplySource::Server),
        [(json!([user("a")]), wait), (json!([user("a"), assistant("of server"), user("b")]), Some(TurnAction::End))]
    );
    let turns = r#"{"turns": ["a", {"text": "b", "delay": "2s"}, "c", "d"]}"#;
    let played = play(turns, ReplySource::Dataset);
    assert_eq!(
        played.iter().map(|(_, action)| *action).collect::<Vec<_>>(),
        [Some(TurnAction::WaitUntil(Nanos::from_secs(3))), Some(TurnAction::Send), Some(TurnAction::End)],
        "three turns at most"
    );
    let last = json!([user("a"), assistant("of server"), user("b"), assistant("of server"), user("c")]);
    assert_eq!(played[2].0, last);
}

#[test]
fn tool_calls_stay_as_they_are_and_their_results_end_a_turn() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "22"});
    let content = json!({"messages": [{"role": "user", "content": "a"}, call, result]}).to_string();
    let played = play(&content, ReplySource::Dataset);
    assert_eq!(played.len(), 2);
    assert_eq!(played[1].0, json!([{"role": "user", "content": "a"}, call, result]));
    let error = RequestBodies::new(settings(LlmApi::Messages), source(&content)).map(|_| ());
    assert_eq!(error, Err("data:1: the API messages takes no tool messages".to_owned()));
}

#[test]
fn a_think_time_of_the_load_is_for_turns_without_one() {
    let prompts = PromptSource::of_random(RandomPrompts { input: TokenCount::Constant(3), turns: 2, seed: 1 });
    let mut state = ConversationState::default();
    state.begin(5, Nanos::ZERO);
    assert!(state.needs_reply(&prompts, ReplySource::Dataset));
    assert_eq!(state.replied(&prompts, None, SECOND, SECOND), TurnAction::WaitUntil(Nanos::from_secs(2)));
    assert_eq!((state.turn(), state.intended()), (1, Nanos::from_secs(2)));
    assert!(!state.needs_reply(&prompts, ReplySource::Server));
    assert_eq!(state.replied(&prompts, None, SECOND, SECOND), TurnAction::End);
}

#[test]
fn prefixes_are_shared_by_conversations_in_turn() {
    let prompts = || PromptSource::of_random(RandomPrompts { input: TokenCount::Constant(4), turns: 1, seed: 1 });
    let plain = bodies(settings(LlmApi::Completions), prompts());
    let with = bodies(settings(LlmApi::Completions), prompts().with_prefixes(10, 2));
    let text =
        |bodies: &RequestBodies, k: u64| body(bodies, k)["prompt"].as_str().map(str::to_owned).unwrap_or_default();
    let prefix = |k: u64| {
        let (own, whole) = (text(&plain, k), text(&with, k));
        whole.strip_suffix(&own).map(str::to_owned).unwrap_or_else(|| panic!("{whole} without {own}"))
    };
    assert_eq!(prefix(0).split_whitespace().count(), 10);
    assert_eq!(prefix(0), prefix(2));
    assert_ne!(prefix(0), prefix(1));
    assert_ne!(text(&plain, 0), text(&plain, 2));
}

//! `weir send edit`: one job is changed.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{Named, Place, called, place};
use crate::cli::exit;
use crate::cli::messages::Messages;
use crate::cli::send::arguments::ms;
use crate::cli::send::request;
use crate::decide::words;
use crate::send::store::StoreError;
use crate::send::{Edit, Entry, Form, Job, State, UnixMs, wall_ms};

#[derive(Debug, Args)]
pub(in crate::cli) struct EditArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    named: Named,
    /// Where it goes
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Its method
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,
    /// 'Name: value' in place of what the job has by this name; 'Name:' takes it away; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// Text, or @FILE
    #[arg(short, long, value_name = "TEXT")]
    body: Option<String>,
    /// It is of use for so long from now on; 'none' for ever
    #[arg(long, value_name = "TIME", value_parser = Ttl::read)]
    ttl: Option<Ttl>,
    /// Higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// What it counts in a --weight-limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    weight: Option<u32>,
    /// The name of the one key that may send it; 'any' for all
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Ttl {
    Forever,
    Of(Duration),
}

impl Ttl {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(Self::Forever) } else { words::time(text).map(Self::Of) }
    }
}

impl EditArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let all = self.named.all();
        let [which] = all.as_slice() else {
            return Err("one job is changed at a time; name it by its id or with --number".into());
        };
        let now = wall_ms();
        let edit = self.edit(now)?;
        let store = self.place.open()?;
        let told = |error: StoreError| error.to_string();
        let Some(before) = store.inspect(which).map_err(told)?.map(|detail| detail.entry) else {
            messages.error(&format!("{}: there is no such job", called(which)));
            return Ok(exit::OBJECTIVE);
        };
        let edit = Edit { headers: self.headers(&before.job)?, ..edit };
        if edit == Edit::default() {
            return Err(
                "what is to be different? give --url, --method, --header, --body, --ttl, --priority, --weight or --key"
                    .into(),
            );
        }
        if !store.edit(before.number, edit, now).wait().map_err(told)? {
            let state = store.inspect(which).map_err(told)?.map(|detail| detail.entry.status.state);
            messages.error(&format!("{}: {}", called(which), obstacle(state)));
            return Ok(exit::OBJECTIVE);
        }
        let after = store.inspect(which).map_err(told)?.map_or(before, |detail| detail.entry);
        let text = format!("{} changed; {}\n", called(which), what_next(&after));
        self.place.say(&text, || json!({ "edited": after.number, "state": after.status.state.word() }))?;
        Ok(exit::OK)
    }

    /// What is to be different, without headers.
    fn edit(&self, now: UnixMs) -> Result<Edit, String> {
        let method = self.method.as_deref().map(request::method).transpose()?;
        let body = self.body.as_deref().map(request::body).transpose()?;
        let headers = self.headers.iter().map(|line| request::header(line)).collect::<Result<Vec<_>, _>>()?;
        Form { url: self.url.clone(), headers, body: body.clone(), ..Form::default() }.check()?;
        let expires = self.ttl.map(|ttl| match ttl {
            Ttl::Forever => None,
            Ttl::Of(length) => Some(now.plus_ms(ms(length))),
        });
        let key_hint = self.key.as_ref().map(|key| Some(key.clone()).filter(|key| key != "any"));
        Ok(Edit {
            method,
            url: self.url.clone(),
            headers: None,
            body,
            expires,
            priority: self.priority,
            weight: self.weight,
            key_hint,
        })
    }

    /// All headers as they are to be; None if they stay.
    fn headers(&self, job: &Job) -> Result<Option<Vec<(String, String)>>, String> {
        if self.headers.is_empty() {
            return Ok(None);
        }
        let mut headers = job.request.headers.clone();
        for line in &self.headers {
            let (name, value) = request::header(line)?;
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
            if !value.is_empty() {
                headers.push((name, value));
            }
        }
        Ok(Some(headers))
    }
}

fn obstacle(state: Option<State>) -> &'static str {
    match state {
        Some(State::Leased) => "it is being sent; change it when it is not",
        Some(State::Done) => "it is delivered",
        _ => "it changed while this went on; look at it with 'weir send list'",
    }
}

/// What becomes of a job that was changed.
fn what_next(entry: &Entry) -> String {
    let state = entry.status.state;
    match state {
        State::Graveyard | State::Expired => format!("it is {}, 'weir send retry' queues it", place(state)),
        _ => format!("it is {}", place(state)),
    }
}

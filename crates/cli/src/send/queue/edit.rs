//! `weir send edit`: changes one job.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{JobIdArgs, StoreArgs, job_name};
use crate::send::request;
use weir_base::Nanos;
use weir_base::units;
use weir_command::Messages;
use weir_command::exit;
use weir_send::queue_view::state_phrase;
use weir_send::store::StoreError;
use weir_send::{Job, JobDefaults, JobEdit, JobEntry, State, TemplateParts, UnixMs, wall_ms};

const EXAMPLES: &str = "Examples:
  weir send edit jobs.jsonl.db order-7 --ttl 1h
  weir send edit jobs.jsonl.db order-7 --pinned-key any

Reference: docs/send/store.md";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    store_args: StoreArgs,
    #[command(flatten)]
    id_args: JobIdArgs,
    /// request URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// request method
    #[arg(short, long, value_name = "METHOD")]
    method: Option<String>,
    /// header to replace; 'NAME:' removes it; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'")]
    headers: Vec<String>,
    /// request body; @FILE
    #[arg(short, long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// time to live from now
    #[arg(long, value_name = "TIME|none", value_parser = TtlArg::read)]
    ttl: Option<TtlArg>,
    /// priority; higher is sent first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// weight in a --weight-limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    weight: Option<u32>,
    /// name of the only API key that may send it
    #[arg(long, value_name = "NAME|any")]
    pinned_key: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum TtlArg {
    Forever,
    Duration(Duration),
}

impl TtlArg {
    fn read(text: &str) -> Result<Self, String> {
        if text == "none" { Ok(Self::Forever) } else { units::time(text).map(Self::Duration) }
    }
}

impl EditArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let all = self.id_args.selectors();
        let [which] = all.as_slice() else {
            return Err("give one job, by its ID or with --number".into());
        };
        let now = wall_ms();
        let edit = self.edit(now)?;
        let store = self.store_args.open()?;
        let text_of = |error: StoreError| error.to_string();
        let Some(before) = store.inspect(which).map_err(text_of)?.map(|detail| detail.entry) else {
            messages.error(&format!("{}: no such job", job_name(which)));
            return Ok(exit::OBJECTIVE);
        };
        let edit = self.with_headers(edit, &before.job)?;
        if edit == JobEdit::default() {
            return Err(
                "nothing to change; give --url, --method, --header, --body, --ttl, --priority, --weight or --pinned-key"
                    .into(),
            );
        }
        if !store.edit(before.number, edit, now).wait().map_err(text_of)? {
            let state = store.inspect(which).map_err(text_of)?.map(|detail| detail.entry.status.state);
            messages.error(&format!("{}: {}", job_name(which), obstacle(state)));
            return Ok(exit::OBJECTIVE);
        }
        let after = store.inspect(which).map_err(text_of)?.map_or(before, |detail| detail.entry);
        let text = format!("{} changed; {}\n", job_name(which), next_step(&after));
        self.store_args.print(&text, || json!({ "edited": after.number, "state": after.status.state.name() }))?;
        Ok(exit::OK)
    }

    /// Requested changes, without headers.
    fn edit(&self, now: UnixMs) -> Result<JobEdit, String> {
        let method = self.method.as_deref().map(request::method).transpose()?;
        let body = self.body.as_deref().map(request::body).transpose()?;
        let headers = self.headers.iter().map(|line| request::header(line)).collect::<Result<Vec<_>, _>>()?;
        JobDefaults { url: self.url.clone(), headers, body: body.clone(), ..JobDefaults::default() }.check()?;
        let expires = self.ttl.map(|ttl| match ttl {
            TtlArg::Forever => None,
            TtlArg::Duration(length) => Some(now.plus_ms(Nanos::from(length).as_millis())),
        });
        let key_hint = self.pinned_key.as_ref().map(|key| Some(key.clone()).filter(|key| key != "any"));
        Ok(JobEdit {
            method,
            url: self.url.clone(),
            headers: None,
            header_templates: Vec::new(),
            body,
            expires_at: expires,
            priority: self.priority,
            weight: self.weight,
            key_hint,
        })
    }

    /// Changes with the complete headers after them. Those of the command line are templates.
    fn with_headers(&self, edit: JobEdit, job: &Job) -> Result<JobEdit, String> {
        if self.headers.is_empty() {
            return Ok(edit);
        }
        let is_template = |index: usize| job.request.templates.headers.contains(&index);
        let old = job.request.headers.iter().enumerate().map(|(index, header)| (header.clone(), is_template(index)));
        let mut headers: Vec<_> = old.collect();
        for line in &self.headers {
            let (name, value) = request::header(line)?;
            headers.retain(|((other, _), _)| !other.eq_ignore_ascii_case(&name));
            if !value.is_empty() {
                headers.push(((name, value), true));
            }
        }
        let mut templates = TemplateParts::default();
        for (index, ((_, value), _)) in headers.iter().enumerate().filter(|(_, (_, is_template))| *is_template) {
            templates.add_header(index, value);
        }
        let headers = headers.into_iter().map(|(header, _)| header).collect();
        Ok(JobEdit { headers: Some(headers), header_templates: templates.headers, ..edit })
    }
}

fn obstacle(state: Option<State>) -> &'static str {
    match state {
        Some(State::Leased) => "it is leased; edit it when the sender has released it",
        Some(State::Done) => "already done",
        _ => "changed meanwhile; see 'weir send list'",
    }
}

/// State of an edited job, and how to have it sent.
fn next_step(entry: &JobEntry) -> String {
    let state = entry.status.state;
    match state {
        State::DeadLettered | State::Expired => format!("it is {}, 'weir send retry' requeues it", state_phrase(state)),
        _ => format!("it is {}", state_phrase(state)),
    }
}

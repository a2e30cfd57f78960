//! Changes of one job.

use super::skipped_job::SkippedJob;
use crate::store::{JobSelector, Store, StoreError};
use crate::{Job, JobDefaults, JobEdit, JobEntry, State, TemplateParts, UnixMs};
use weir_base::Nanos;

/// Changes of one job; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobChanges {
    /// URL of the request, a template.
    pub url: Option<String>,
    /// Method, in upper case.
    pub method: Option<String>,
    /// Headers that take the place of those of their names, templates; one without a value removes them.
    pub headers: Vec<(String, String)>,
    /// Body, a template.
    pub body: Option<Vec<u8>>,
    /// Time to live from now on; unlimited without a time.
    pub ttl: Option<Option<Nanos>>,
    /// Priority; higher is sent first.
    pub priority: Option<i32>,
    /// Weight in a limit of weights.
    pub weight: Option<u32>,
    /// Name of the only API key that may send it; any without a name.
    pub pinned_key: Option<Option<String>>,
}

/// End of an edit.
#[derive(Debug)]
pub enum EditOutcome {
    /// The job as it is now.
    Edited(Box<JobEntry>),
    /// The job is as it was.
    Skipped(SkippedJob),
}

impl JobChanges {
    /// Checks that there are any, and their templates.
    ///
    /// # Errors
    /// One line with the invalid change.
    pub fn check(&self) -> Result<(), String> {
        let defaults = JobDefaults {
            url: self.url.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            ..JobDefaults::default()
        };
        defaults.check()?;
        if *self == Self::default() {
            return Err(
                "nothing to change; give --url, --method, --header, --body, --ttl, --priority, --weight or --pinned-key"
                    .into(),
            );
        }
        Ok(())
    }

    /// Changes a job of a store.
    ///
    /// # Errors
    /// A store that cannot be read or written.
    pub fn apply(&self, store: &dyn Store, which: &JobSelector, now: UnixMs) -> Result<EditOutcome, StoreError> {
        let entry = || Ok::<_, StoreError>(store.inspect(which)?.map(|detail| detail.entry));
        let Some(before) = entry()? else { return Ok(EditOutcome::Skipped(SkippedJob::missing(which))) };
        if !store.edit(before.number, self.edit(&before.job, now), now).wait()? {
            let state = entry()?.map(|entry| entry.status.state);
            return Ok(EditOutcome::Skipped(SkippedJob::new(which, obstacle(state))));
        }
        Ok(EditOutcome::Edited(Box::new(entry()?.unwrap_or(before))))
    }

    fn edit(&self, job: &Job, now: UnixMs) -> JobEdit {
        let edit = JobEdit {
            method: self.method.clone(),
            url: self.url.clone(),
            headers: None,
            header_templates: Vec::new(),
            body: self.body.clone(),
            expires_at: self.ttl.map(|ttl| ttl.map(|length| now.plus_ms(length.as_millis()))),
            priority: self.priority,
            weight: self.weight,
            key_hint: self.pinned_key.clone(),
        };
        if self.headers.is_empty() { edit } else { self.with_headers(edit, job) }
    }

    /// An edit with all headers that the job then has; those of the changes are templates.
    fn with_headers(&self, edit: JobEdit, job: &Job) -> JobEdit {
        let is_template = |index: usize| job.request.templates.headers.contains(&index);
        let old = job.request.headers.iter().enumerate().map(|(index, header)| (header.clone(), is_template(index)));
        let mut headers: Vec<_> = old.collect();
        for (name, value) in &self.headers {
            headers.retain(|((other, _), _)| !other.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push(((name.clone(), value.clone()), true));
            }
        }
        let mut templates = TemplateParts::default();
        for (index, ((_, value), _)) in headers.iter().enumerate().filter(|(_, (_, is_template))| *is_template) {
            templates.add_header(index, value);
        }
        let headers = headers.into_iter().map(|(header, _)| header).collect();
        JobEdit { headers: Some(headers), header_templates: templates.headers, ..edit }
    }
}

fn obstacle(state: Option<State>) -> &'static str {
    match state {
        Some(State::Leased) => "it is leased; edit it when the sender has released it",
        Some(State::Done) => "already done",
        _ => "changed meanwhile; see 'weir send list'",
    }
}

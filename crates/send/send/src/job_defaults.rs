//! Defaults of jobs, and jobs built from them.

use std::borrow::Cow;

use super::job::{Job, JobRequest, UnixMs};
use super::key_hosts::KeyHosts;
use super::template::{has_field, unknown_field};
use super::template_parts::{JobBodyKind, TemplateParts};
use weir_net::target::Target;
use weir_request::secret_names::is_secret_name;
use weir_request::url_text::UrlText;

/// Values for jobs that do not set their own. These are templates; a job's own values are data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobDefaults {
    /// URL; base of URLs that are paths.
    pub url: Option<String>,
    /// Method; GET, or POST with a body.
    pub method: Option<String>,
    /// Headers; a job's own of the same name replace them.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<Vec<u8>>,
    /// Time to live, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Whether the URLs of jobs are templates, too.
    pub url_fields: bool,
    /// Whether the bodies of jobs are templates, too.
    pub body_fields: bool,
    /// Hosts to which keys and default credentials are sent.
    pub key_hosts: KeyHosts,
}

/// Fields of one job; [`JobDefaults`] has the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOverrides {
    /// Job ID.
    pub id: Option<String>,
    /// URL, or a path at the host of the default URL.
    pub url: Option<String>,
    /// Method, in any case.
    pub method: Option<String>,
    /// Headers; they replace the default ones of the same name.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<Vec<u8>>,
    /// Content type of the body, unless a header has one.
    pub content_type: Option<Cow<'static, str>>,
    /// Time to live, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Weight; 1 by default.
    pub weight: Option<u32>,
    /// Priority, higher is sent first; 0 by default.
    pub priority: Option<i32>,
    /// Name of the only key that may send it.
    pub key_hint: Option<String>,
}

impl JobDefaults {
    /// Validates the templates and the URL.
    ///
    /// # Errors
    /// One line of text.
    pub fn check(&self) -> Result<(), String> {
        let texts = self.url.iter().map(|url| ("url", url.as_str()));
        let headers = self.headers.iter().map(|(_, value)| ("header", value.as_str()));
        let body = self.body.as_deref().and_then(|body| std::str::from_utf8(body).ok()).map(|body| ("body", body));
        for (place, text) in texts.chain(headers).chain(body) {
            if let Some(name) = unknown_field(text) {
                return Err(format!("--{place}: unknown field '{{{name}}}'; choose {{key}}, {{nonce}} or {{id}}"));
            }
        }
        if let Some(url) = &self.url {
            Target::parse(url).map_err(|error| format!("--url: {error}"))?;
        }
        Ok(())
    }

    /// Whether the defaults have an API key.
    pub fn uses_key(&self) -> bool {
        let texts = self.url.iter().chain(self.headers.iter().map(|(_, value)| value)).map(String::as_str);
        let body = self.body.as_deref().and_then(|body| std::str::from_utf8(body).ok());
        texts.chain(body).any(|text| has_field(text, "key"))
    }

    /// Name of a default credential that a job's host may not have, so that it was left out.
    pub fn credential_left_out(&self, request: &JobRequest) -> Option<&str> {
        let has = |name: &str| request.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let names = self.headers.iter().map(|(name, _)| name.as_str());
        names.into_iter().find(|name| is_secret_name(name) && !has(name))
    }

    /// Validates that the default credentials have a host: without one they would go to any host that a job names.
    ///
    /// # Errors
    /// One line of text.
    pub fn check_credentials(&self) -> Result<(), String> {
        if self.key_hosts.is_empty() {
            let credential = self.headers.iter().find(|(name, value)| is_secret_name(name) || has_field(value, "key"));
            if let Some((name, _)) = credential {
                return Err(format!(
                    "--header '{name}' is a credential, and no host may have it; give --url, or --key-host HOST"
                ));
            }
        }
        Ok(())
    }

    /// Builds a job from its fields and the defaults.
    ///
    /// # Errors
    /// Reason, in prose.
    pub fn build(&self, overrides: JobOverrides, now: UnixMs) -> Result<Job, String> {
        if overrides.id.as_ref().is_some_and(String::is_empty) {
            return Err("empty id".into());
        }
        if overrides.key_hint.as_ref().is_some_and(String::is_empty) {
            return Err("empty pinned_key; leave it out for any key".into());
        }
        let weight = overrides.weight.unwrap_or(1);
        if weight == 0 {
            return Err("invalid weight 0; it is at least 1".into());
        }
        let (url, template_bytes) = self.resolve_url(overrides.url.as_deref())?;
        // Most jobs are for the host of --url, which may have its credentials.
        let foreign = self.foreign(&url, &overrides);
        let mut templates = TemplateParts::default();
        templates.add_url(&url, template_bytes);
        let mut headers = overrides.headers;
        for (name, value) in &self.headers {
            let is_replaced = headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
            let is_kept_back = foreign.is_some() && is_secret_name(name) && !has_field(value, "key");
            if !is_replaced && !is_kept_back {
                templates.add_header(headers.len(), value);
                headers.push((name.clone(), value.clone()));
            }
        }
        if let Some(kind) = overrides.content_type
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("content-type".into(), kind.into_owned()));
        }
        if self.body_fields || overrides.body.is_none() && self.body.is_some() {
            templates.body = JobBodyKind::Template;
        }
        let body = overrides.body.or_else(|| self.body.clone()).unwrap_or_default();
        let method = overrides.method.map(|method| method.to_ascii_uppercase()).or_else(|| self.method.clone());
        let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.into());
        let request = JobRequest { method, url, headers, body, templates };
        if let Some(origin) = foreign
            && request.template_texts().any(|text| has_field(text, "key"))
        {
            return Err(format!("its request needs an API key, and {origin} may have none; give --key-host {origin}"));
        }
        Ok(Job {
            id: overrides.id,
            request,
            created_at: now,
            expires_at: overrides.ttl_ms.or(self.ttl_ms).map(|ms| now.plus_ms(ms)),
            priority: overrides.priority.unwrap_or(0),
            weight,
            key_hint: overrides.key_hint,
            idempotency_key: None,
        })
    }

    /// Origin that a job names, in its URL or a `Host` of its own, and that may have no keys.
    fn foreign(&self, url: &str, overrides: &JobOverrides) -> Option<String> {
        let is_whole = overrides.url.as_deref().is_some_and(|url| !url.starts_with('/'));
        let hosts = || overrides.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        if !is_whole && hosts().next().is_none() {
            return None;
        }
        let target = Target::parse(url).ok()?;
        let of_url = if is_whole { self.key_hosts.foreign(&target, None) } else { None };
        of_url.or_else(|| hosts().find_map(|(_, host)| self.key_hosts.foreign(&target, Some(host))))
    }

    /// URL of a job, and the length of its beginning that is a template.
    fn resolve_url(&self, url_override: Option<&str>) -> Result<(String, usize), String> {
        let (url, of_defaults) = match (url_override, &self.url) {
            (None, None) => return Err("no url, and there is no --url".into()),
            // The defaults are validated already.
            (None, Some(url)) => return Ok((url.clone(), url.len())),
            (Some(path), Some(base)) if path.starts_with('/') => {
                let origin = UrlText::of(base).origin;
                (format!("{origin}{path}"), origin.len())
            }
            (Some(url), _) if url.starts_with('/') => return Err(format!("'{url}' is a path, and there is no --url")),
            (Some(url), _) => (url.to_owned(), 0),
        };
        Target::parse(&url).map_err(|error| error.to_string())?;
        if !self.url_fields {
            return Ok((url, of_defaults));
        }
        if let Some(name) = unknown_field(&url) {
            return Err(format!("unknown field '{{{name}}}'; choose {{key}}, {{nonce}} or {{id}}"));
        }
        let length = url.len();
        Ok((url, length))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const NOW: UnixMs = UnixMs(1_000_000);

    pub(crate) fn form() -> JobDefaults {
        JobDefaults {
            url: Some("http://h:1/a?k={key}".into()),
            headers: vec![("x-a".into(), "1".into())],
            ttl_ms: Some(1000),
            key_hosts: KeyHosts::new(Some("http://h:1/"), &[]).unwrap(),
            ..JobDefaults::default()
        }
    }

    #[test]
    fn only_defaults_are_templates_unless_fields_of_jobs_are_wanted() {
        let form = JobDefaults {
            url: Some("http://{key}@h:1/a/{id}".into()),
            headers: vec![("x-key".into(), "{key}".into()), ("x-own".into(), "{id}".into())],
            body: Some(b"{nonce}".to_vec()),
            ..form()
        };
        let parts = |form: &JobDefaults, text: &str| form.parse_line(1, text, NOW).unwrap().unwrap().request;
        let plain = parts(&form, "{}");
        let all = TemplateParts { url_bytes: 23, headers: vec![0, 1], body: JobBodyKind::Template };
        assert_eq!(plain.templates, all);
        let line = r#"{"url": "/b/{id}", "headers": {"X-Own": "{key}"}, "body": {"text": "{key} {nonce} {id} {x}"}}"#;
        let own = parts(&form, line);
        assert_eq!(own.templates, TemplateParts { url_bytes: 16, headers: vec![1], body: JobBodyKind::Data });
        assert_eq!(own.literal_field(), Some("URL"));
        let trusted = JobDefaults { url_fields: true, body_fields: true, ..form };
        let own = parts(&trusted, line);
        assert_eq!(own.templates, TemplateParts { url_bytes: 23, headers: vec![1], body: JobBodyKind::Template });
    }

    #[test]
    fn credentials_stay_at_the_host_of_the_url() {
        let form = JobDefaults {
            headers: vec![("Cookie".into(), "a=b".into()), ("x-a".into(), "1".into())],
            url: Some("http://h:1/".into()),
            ..form()
        };
        let names = |form: &JobDefaults, url: &str| {
            let request = form.build(JobOverrides { url: Some(url.into()), ..JobOverrides::default() }, NOW)?.request;
            Ok::<_, String>(request.headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" "))
        };
        for (url, sent) in
            [("/x", "Cookie x-a"), ("http://h:1/x", "Cookie x-a"), ("http://h:2/", "x-a"), ("https://h:1/", "x-a")]
        {
            assert_eq!(names(&form, url).as_deref(), Ok(sent), "{url}");
        }
        let with_host = |form: &JobDefaults, host: &str| {
            let headers = vec![("HOST".to_owned(), host.to_owned())];
            let job = form.build(JobOverrides { url: Some("/x".into()), headers, ..JobOverrides::default() }, NOW)?;
            Ok::<_, String>(job.request.headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" "))
        };
        for (host, sent) in [
            ("h:1", "HOST Cookie x-a"),
            ("H:1", "HOST Cookie x-a"),
            ("h", "HOST x-a"),
            ("o", "HOST x-a"),
            ("", "HOST x-a"),
            ("u@h:1", "HOST x-a"),
        ] {
            assert_eq!(with_host(&form, host).as_deref(), Ok(sent), "{host}");
        }
        let keyed = JobDefaults { headers: vec![("x-a".into(), "{key}".into())], ..form.clone() };
        let why = with_host(&keyed, "o").unwrap_err();
        assert_eq!(why, "its request needs an API key, and http://o may have none; give --key-host http://o");
        assert_eq!(names(&keyed, "/x").as_deref(), Ok("x-a"));
        let why = names(&keyed, "https://o/x").unwrap_err();
        assert_eq!(why, "its request needs an API key, and https://o may have none; give --key-host https://o");
        let named = JobDefaults { key_hosts: KeyHosts::new(Some("http://h:1/"), &["o".into()]).unwrap(), ..keyed };
        assert_eq!(names(&named, "https://o/x").as_deref(), Ok("x-a"));
        assert_eq!(with_host(&named, "o:80").as_deref(), Ok("HOST x-a"));
        let body = JobDefaults { headers: Vec::new(), body: Some(b"{key}".to_vec()), ..form };
        assert!(names(&body, "https://o/x").is_err());
        let homeless = JobDefaults { headers: vec![("Authorization".into(), "x".into())], ..JobDefaults::default() };
        assert!(homeless.check_credentials().unwrap_err().contains("--key-host"));
    }

    #[test]
    fn a_form_with_an_unknown_field_is_refused() {
        let wrong = JobDefaults { url: Some("http://h/{token}".into()), ..JobDefaults::default() };
        assert!(wrong.check().unwrap_err().starts_with("--url: unknown field '{token}'"));
        assert_eq!(form().check(), Ok(()));
    }
}

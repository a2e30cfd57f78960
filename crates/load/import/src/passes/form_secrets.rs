//! Credentials in forms whose text is kept as it is, since encoded anew it would be another text.

use weir_hurl::Template;
use weir_request::secret_names::is_secret_name;

use crate::builder;
use crate::names::snake_case;
use crate::text;

/// Replaces the values of secrets by variables, which have them as they are encoded.
pub(super) fn hide(body: &Template, name: &mut dyn FnMut(&str, &str) -> String) -> Template {
    let Some(fixed) = body.as_text() else { return body.clone() };
    let mut parts = Vec::new();
    for (index, pair) in fixed.split('&').enumerate() {
        parts.extend((index > 0).then(|| Template::text("&")));
        let secret = pair.split_once('=').filter(|(key, value)| {
            !value.is_empty() && builder::percent_decoded(key).is_some_and(|key| is_secret_name(&key))
        });
        match secret {
            Some((key, value)) => {
                let variable = text::variable(&name(value, &snake_case(key)));
                parts.extend([Template::text(format!("{key}=")), variable]);
            }
            None => parts.push(Template::text(pair)),
        }
    }
    text::concat(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_variables_as_they_are_encoded() {
        let mut taken = Vec::new();
        let made = hide(&Template::text("a=b+c&password=x+%20y&token="), &mut |value, proposed| {
            taken.push(value.to_owned());
            proposed.to_owned()
        });
        assert_eq!(text::source(&made), "a=b+c&password={{password}}&token=");
        assert_eq!(taken, ["x+%20y"]);
    }
}

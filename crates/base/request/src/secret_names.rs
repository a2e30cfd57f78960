//! Names of secrets: the one list for headers, cookies, fields of JSON and of forms, query parameters and variables.
//!
//! Reports, logs, saved commands and imports leave out a value by the name that it has. A name counts by its end, without
//! separators and case: `X-Api-Key`, `stripe_api_key` and `apiKey` are one kind.

/// Headers without which a request loses its credentials, whatever else a service may take for one.
pub const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

/// Ends of secret names, as lower-case letters and digits.
const SECRET_ENDS: [&str; 32] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "apikey",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "passcode",
    "accesskey",
    "secretkey",
    "signingkey",
    "subscriptionkey",
    "privatekey",
    "sessionid",
    "sessionkey",
    "authkey",
    "credential",
    "credentials",
    "signature",
    "jwt",
    "otp",
    "secrets",
    "apikeys",
    "passwords",
    "clientassertion",
    "encryptionkey",
    "accountkey",
    "masterkey",
    "sharedkey",
    "functionskey",
];

/// Whole names of secrets that are too short to be ends, or ends of other names: `max_tokens` is a number.
const SECRET_NAMES: [&str; 9] = ["key", "sid", "sig", "auth", "pass", "pin", "tok", "tokens", "bearer"];

/// End of the names of prices, such as `input_cost_per_token`.
const PER_TOKEN: &str = "pertoken";

/// Whether what has this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    // Compared from the end, without a copy: reports ask this for each header.
    let ends_with = |end: &str| {
        let mut letters = letters_backwards(name);
        end.bytes().rev().all(|byte| letters.next() == Some(byte))
    };
    (SECRET_ENDS.iter().any(|end| ends_with(end)) && !ends_with(PER_TOKEN))
        || SECRET_NAMES.iter().any(|whole| letters_backwards(name).eq(whole.bytes().rev()))
}

/// Letters and digits of a name in lower case, from its end.
fn letters_backwards(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().rev().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_secrets_are_found_and_other_names_are_not() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "X-Auth-Token",
            "access_token",
            "clientSecret",
            "X-Api-Key",
            "apikey",
            "openai_api_key",
            "Ocp-Apim-Subscription-Key",
            "password",
            "new-password",
            "PHPSESSIONID",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "key",
            "sig",
            "x-jwt",
            "tokens",
            "old_passwords",
            "client-secrets",
            "apiKeys",
            "client_assertion",
            "EncryptionKey",
            "AccountKey",
            "master-key",
            "SharedKey",
            "x-functions-key",
            "Bearer",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "-",
            "Accept",
            "max_tokens",
            "prompt_tokens",
            "reasoning_tokens",
            "bearer_of_news",
            "X-Request-Id",
            "monkey",
            "keys",
            "page",
            "Content-Type",
            "idempotency-key",
            "input_cost_per_token",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(CREDENTIAL_HEADERS.iter().all(|name| is_secret_name(name)));
    }

    /// Reference implementation: the letters of the name as a text of its own.
    fn naive(name: &str) -> bool {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let letters = letters.to_ascii_lowercase();
        let is_price = letters.ends_with("pertoken");
        (!is_price && SECRET_ENDS.iter().any(|end| letters.ends_with(end))) || SECRET_NAMES.contains(&letters.as_str())
    }

    proptest! {
        #[test]
        fn separators_and_case_do_not_matter(
            before in "[a-zA-Z_é-]{0,6}", at in 0..SECRET_ENDS.len(), after in "[-_ ]{0,2}", any in ".{0,12}"
        ) {
            let spelled: String = SECRET_ENDS[at].chars().flat_map(|c| [c.to_ascii_uppercase(), '-']).collect();
            let joined = format!("{before}{spelled}{after}");
            prop_assert!(is_secret_name(&joined), "{joined}");
            prop_assert_eq!(is_secret_name(&any), naive(&any));
        }
    }
}

//! Tests of URLs.

mod examples;
mod properties;
mod references;
mod whatwg;

use super::HttpUrl;

fn url(text: &str) -> HttpUrl {
    HttpUrl::parse(text.as_bytes()).expect("a URL")
}

//! Requests as the APIs of language models have them.
//!
//! - [`RequestApi`]: the APIs, and their paths
//! - [`RequestSettings`]: what all requests of a load have in common
//! - [`RequestBodies`]: bodies of turns; `message_writer`: messages and images in each API
//! - [`BodyTemplate`]: body of any other API

mod body_template;
mod message_writer;
mod request_api;
mod request_bodies;
mod request_settings;

pub use self::body_template::BodyTemplate;
pub use self::request_api::RequestApi;
pub use self::request_bodies::RequestBodies;
pub use self::request_settings::RequestSettings;

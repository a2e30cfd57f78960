//! Requests as the APIs of language models have them.
//!
//! - [`RequestSettings`]: what all requests of a load have in common
//! - [`RequestBodies`]: bodies of turns; `message_writer`: messages and images in each API
//! - [`BodyTemplate`]: body of any other API

mod body_template;
mod message_writer;
mod request_bodies;
mod request_settings;

pub use self::body_template::BodyTemplate;
pub use self::request_bodies::RequestBodies;
pub use self::request_settings::RequestSettings;

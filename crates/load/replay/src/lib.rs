//! Access logs: lines in, requests with their times out, and loads of them.
//!
//! - [`AccessFormat`]: format of a log, detected from its lines or given as a pattern; it reads a line as an
//!   [`AccessRecord`]
//! - [`LinePattern`]: lines of fields between literals, in the notations of nginx, Apache and Envoy
//! - [`JsonLines`]: lines that are JSON objects, whose members are recognized by their names
//! - [`AccessTime`]: time of a line, with its resolution, and what it marks
//! - [`LogTimeline`]: records in the order of their starts: sorted in a bounded window, coarse stamps spread
//! - [`RecordSelection`]: which records a replay has, and why others are left out ([`LineOmission`])
//! - [`RouteTable`]: names of requests that differ in identifiers alone
//! - [`RouteMix`]: routes by how often a log has them, with samples of their targets
//! - [`RateProfile`]: rate of a log over time, as stages of a load
//!
//! These are pure. What acts:
//!
//! - [`log`]: lines of files and stdin
//! - [`load`]: requests of a log at their recorded times: [`load::ReplayOptions`] become a [`load::ReplayLoad`]
//! - [`LogLoad`]: logs that give another load its rate ([`LogRate`], `log_rate`) or its requests (`log_mix`)
//!
//! Logs are what others wrote, and lines are never trusted: a line that cannot be read is an error of that line, with
//! the reason, and the memory of each part is bounded.

mod access_format;
mod access_record;
mod access_time;
mod detection;
mod json_lines;
mod line_error;
mod line_field;
mod line_pattern;
mod line_piece;
pub mod load;
pub mod log;
mod log_load;
mod log_mix;
mod log_rate;
mod log_timeline;
mod nginx_notation;
mod percent_notation;
mod rate_profile;
mod raw_fields;
mod record_filter;
mod record_selection;
mod request_text;
mod route_mix;
mod route_table;
mod sort_window;
mod stamp_spread;

pub use self::access_format::AccessFormat;
pub use self::access_record::AccessRecord;
pub use self::access_time::{AccessTime, StampMoment};
pub use self::detection::FormatDetection;
pub use self::json_lines::JsonLines;
pub use self::line_error::LineError;
pub use self::line_pattern::LinePattern;
pub use self::line_piece::PatternError;
pub use self::log_load::LogLoad;
pub use self::log_rate::LogRate;
pub use self::log_timeline::{LogTimeline, TimedRecord};
pub use self::rate_profile::RateProfile;
pub use self::record_filter::RecordFilter;
pub use self::record_selection::{LineOmission, RecordSelection};
pub use self::route_mix::{MixedRoute, RouteMix};
pub use self::route_table::RouteTable;
pub use self::sort_window::{SortWindow, WindowLimit};

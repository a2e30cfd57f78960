//! Scenarios in the load: which one an iteration has, its users, and where their requests go.
//!
//! - [`ScenarioMix`]: scenarios of a plan, compiled
//! - `with_single_request`: a single request with templates or checks as a scenario of one step
//! - `UserTable`: users of one thread, their waits, and what they send next; `UserFlow`: what they follow, compiled
//!   steps or a program
//! - `OriginResolver`: addresses of the hosts that scenarios name
//! - `StepExchange`: request of a step on a connection, and what is kept of its response
//! - [`StepTrace`]: requests and responses as they were, for a person

mod body_budget;
mod call_stream;
mod compiled_scenario;
mod data_source;
mod exchange;
mod exchange_pool;
mod file_root;
mod first_iteration;
mod flow_event;
mod iteration_progress;
mod kept_response;
mod mix;
mod mix_compiler;
mod mix_settings;
mod name_refresh;
mod origin_resolver;
mod program_flows;
mod sample;
mod scenario_data;
mod scenario_hook;
mod single_request;
mod source;
mod step_flows;
mod thread_origins;
mod trace;
mod user_action;
mod user_connections;
mod user_deal;
mod user_exchange;
mod user_flow;
mod user_lookup;
mod user_table;

pub(super) use self::call_stream::CallStream;
pub use self::data_source::DataSource;
pub(super) use self::exchange::StepExchange;
pub(super) use self::exchange_pool::ExchangePool;
pub use self::file_root::path_within;
pub(super) use self::flow_event::{FlowEvent, FlowNext};
pub use self::kept_response::decoded_body;
pub use self::mix::ScenarioMix;
pub(crate) use self::mix::distinct;
pub(super) use self::origin_resolver::{OriginResolver, ResolvedOrigin, target_of};
pub(super) use self::program_flows::ProgramFlows;
pub use self::program_flows::ProgramPlan;
pub(super) use self::sample::{failure_message, failure_sample};
pub(super) use self::single_request::{as_single_step, with_single_request};
pub(crate) use self::source::without_user;
pub use self::source::{AS_HURL, ScenarioFile, ScenarioSource};
pub(super) use self::step_flows::StepFlows;
pub use self::trace::{CaptureTrace, CheckTrace, StepTrace};
pub(super) use self::user_action::{EndedIteration, Send, UserAction, UserRest};
pub(super) use self::user_exchange::UserExchange;
pub(super) use self::user_flow::{CallBuffers, CallSubject, ScriptTime, UserFlow};
pub(super) use self::user_table::UserTable;
pub use weir_scenario::data::{RowOrder, ThinkTime};
pub use weir_scenario::value::Value;

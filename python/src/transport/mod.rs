//! Calls with streamed bodies: what the transports of other libraries (`weir/httpx2.py` and its kin) are made of.
//!
//! - [`owner`]: state shared by the calls of a transport; [`upstream_key`]: what tells its upstreams apart;
//!   [`kept_heap`]: memory that stays with the process
//! - [`streamed_call`]: one call in flight, between Python and its task, which tells of changes by a [`change_notice`]
//! - [`upload`], [`upload_queue`]: its request's body; [`task`]: the call itself, and the pump of its response's body
//! - [`handle`]: the call for Python; [`received`]: headers as received
//! - [`io_thread`]: event loop of the calls that block; awaited ones are on asyncio's

pub(crate) mod change_notice;
pub(crate) mod handle;
pub(crate) mod io_thread;
mod kept_heap;
pub(crate) mod owner;
pub(crate) mod received;
pub(crate) mod streamed_call;
pub(crate) mod task;
mod upload;
mod upload_queue;
mod upstream_key;

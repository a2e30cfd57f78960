//! Listener for changes by other processes, on a connection of its own, since it blocks.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::connection::connect;
use super::writer::RedisStoreShared;

/// Interval of checks whether the store is closed.
const CLOSE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const RECONNECT_PAUSE: Duration = Duration::from_millis(300);

/// Listens until the store is closed; reports when the subscription has started.
pub(super) fn listen(shared: &Arc<RedisStoreShared>, begun: Sender<()>) {
    let mut begun = Some(begun);
    while !shared.work_queue.is_closed() {
        // A lost connection is not reported: the writer notices an unreachable server.
        let _ = listen_once(shared, &mut begun);
        shared.work_queue.sleep_unless_closed(RECONNECT_PAUSE);
    }
}

fn listen_once(shared: &RedisStoreShared, begun: &mut Option<Sender<()>>) -> ::redis::RedisResult<()> {
    let Ok(mut connection) = connect(&shared.context.address) else { return Ok(()) };
    let mut channel = connection.as_pubsub();
    channel.subscribe(format!("{}news", shared.context.address.prefix))?;
    channel.set_read_timeout(Some(CLOSE_CHECK_INTERVAL))?;
    if let Some(begun) = begun.take() {
        let _ = begun.send(());
    } else {
        // Messages in between are lost, so everything counts as changed.
        notify(shared, "arrived");
        notify(shared, "keys");
    }
    while !shared.work_queue.is_closed() {
        let news: String = match channel.get_message() {
            Ok(message) => message.get_payload()?,
            Err(error) if error.is_timeout() => continue,
            Err(error) => return Err(error),
        };
        let (who, what) = news.split_once(' ').unwrap_or_default();
        if who != shared.context.client_name {
            notify(shared, what);
        }
    }
    Ok(())
}

fn notify(shared: &RedisStoreShared, what: &str) {
    match what {
        "arrived" => shared.notify(3),
        "keys" => shared.key_changes.send_modify(|n| *n = n.wrapping_add(1)),
        _ => shared.notify(1),
    }
}

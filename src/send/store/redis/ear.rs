//! Hears of what others have changed. A connection of its own: nothing that blocks has a place on one that others use.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::link::connect;
use super::writer::Shared;

/// It is looked so often whether the store is closed.
const LOOK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(300);

/// Listens until the store is closed; says when it has begun.
pub(super) fn listen(shared: &Arc<Shared>, begun: Sender<()>) {
    let mut begun = Some(begun);
    while !shared.inbox.is_closed() {
        // Its end is no event: the writer tells of a server that is away.
        let _ = listen_once(shared, &mut begun);
        shared.inbox.pause(PAUSE);
    }
}

fn listen_once(shared: &Shared, begun: &mut Option<Sender<()>>) -> ::redis::RedisResult<()> {
    let Ok(mut connection) = connect(&shared.terms.address) else { return Ok(()) };
    let mut channel = connection.as_pubsub();
    channel.subscribe(format!("{}news", shared.terms.address.prefix))?;
    channel.set_read_timeout(Some(LOOK))?;
    if let Some(begun) = begun.take() {
        let _ = begun.send(());
    } else {
        // What was said meanwhile is not heard any more.
        tell(shared, "arrived");
        tell(shared, "keys");
    }
    while !shared.inbox.is_closed() {
        let news: String = match channel.get_message() {
            Ok(message) => message.get_payload()?,
            Err(error) if error.is_timeout() => continue,
            Err(error) => return Err(error),
        };
        let (who, what) = news.split_once(' ').unwrap_or_default();
        if who != shared.terms.client {
            tell(shared, what);
        }
    }
    Ok(())
}

fn tell(shared: &Shared, what: &str) {
    match what {
        "arrived" => shared.heard(3),
        "keys" => shared.moves.send_modify(|n| *n = n.wrapping_add(1)),
        _ => shared.heard(1),
    }
}

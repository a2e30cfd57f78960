//! Many calls of all sorts leak neither connections, files, tasks nor counters.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::calling::{calling, get, get_directly, ms, upstream, waiting};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weir_base::Nanos;
use weir_call::{CallBody, CallEngine, CallPlan, Success};
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;

/// A service that responds mostly at once, sometimes late, in parts, with a failure, never, or with a close.
async fn serve(mut stream: TcpStream, engine: CallEngine, turn: &Cell<u64>) {
    let mut room = vec![0; 4096];
    let mut come = 0;
    while let Ok(read @ 1..) = stream.read(&mut room[come..]).await {
        come += read;
        if !room[..come].ends_with(b"\r\n\r\n") {
            continue;
        }
        come = 0;
        let number = turn.replace(turn.get() + 1);
        // For some periods it only fails or hangs.
        let sort = match number % 10_000 {
            9_700..9_850 => 1,
            9_850.. => 4,
            other => other % 64,
        };
        let bytes: &[u8] = match sort {
            1 => b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno",
            2 | 3 => {
                engine.timer().sleep(ms(4)).await;
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            }
            4 => continue,
            5 => return,
            6 => {
                let sent = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").await;
                engine.timer().sleep(ms(1)).await;
                if sent.is_err() {
                    return;
                }
                b"k"
            }
            7 => b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nok",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        };
        if stream.write_all(bytes).await.is_err() {
            return;
        }
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// A sequence of calls, some of which, and some of whose responses, are dropped half-way.
async fn caller(engine: &CallEngine, plan: &Arc<CallPlan>, left: &Cell<u64>, is_direct: bool) {
    while left.get() > 0 {
        let number = left.replace(left.get() - 1);
        let mut call = Box::pin(async {
            if is_direct { get_directly(engine, plan).await } else { get(engine, plan).await.map(|answer| answer.body) }
        });
        if number.is_multiple_of(11) {
            let mut patience = pin!(engine.timer().sleep(Nanos(number % 5 * 300_000)));
            poll_fn(|cx| {
                let ended = call.as_mut().poll(cx).is_ready();
                if ended || patience.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            continue;
        }
        if let Ok(body @ CallBody::Streaming(_)) = call.await
            && number.is_multiple_of(2)
        {
            let _ = body.collect().await;
        }
    }
}

fn leave_nothing(calls: u64, is_direct: bool) {
    calling(async |engine| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let turn: &Cell<u64> = Box::leak(Box::default());
        tokio::task::spawn_local({
            let engine = engine.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::task::spawn_local(serve(stream, engine.clone(), turn));
                }
            }
        });
        let stages = vec![HedgeStage { after: StageTrigger::Time(ms(2)), on_failure: true, attempts: 2 }];
        let retry =
            RetryPolicy { max_retries: 1, backoff: Backoff { min: ms(1), max: ms(1) }, ..RetryPolicy::default() };
        let policy = Policy { deadline: ms(20), stages, retry, budget: None, ..Policy::default() };
        let places = Arc::new(upstream(&[url.clone(), url]).with_fixed_limit(30, 10));
        let plan = Arc::new(CallPlan::new(policy, Success::default(), places));
        // One call first, for one-time allocations.
        let _ = get(&engine, &plan).await;
        let (files, tasks) = (open_files(), alive());
        let begun = engine.timer().now();
        let left = Cell::new(calls);
        let mut callers: Vec<_> = (0..16).map(|_| Box::pin(caller(&engine, &plan, &left, is_direct))).collect();
        poll_fn(|cx| {
            callers.retain_mut(|caller| caller.as_mut().poll(cx).is_pending());
            if callers.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(callers);
        let took = engine.timer().now() - begun;
        println!("{calls} calls in {took}, {:?}, {:?}", plan.counts.outcomes(), plan.upstream.counts);
        let counts = &plan.upstream.counts;
        let sent: u64 = counts.sent().iter().map(|(_, count)| count).sum();
        let ended: u64 = counts.outcomes().iter().map(|(_, count)| count).sum();
        assert_eq!((sent, counts.in_flight(), waiting(&plan)), (ended, 0, 0));
        let calls_ended: u64 = plan.counts.outcomes().iter().map(|(_, count)| count).sum();
        assert_eq!(calls_ended, calls + 1);
        let outcomes = plan.counts.outcomes();
        // On a busy machine none may fail before its deadline.
        let unsent: u64 = outcomes.iter().filter(|(name, _)| *name == "rejected").map(|(_, count)| count).sum();
        let is_mixed = [0, 2, 3].iter().all(|at| outcomes[*at].1 > 0);
        assert!(is_mixed && sent > calls - unsent, "of all sorts: {outcomes:?}, {sent} sent");
        let patience = || engine.timer().now() + Nanos::from_secs(10);
        // Draining of responses takes up to a second, on a machine with time.
        let until = patience();
        while engine.client().counts().open != engine.client().counts().idle && engine.timer().now() < until {
            engine.timer().sleep(ms(1)).await;
        }
        let now = engine.client().counts();
        assert_eq!(now.open, now.idle, "{now:?}");
        engine.client().sweep(engine.timer().now());
        engine.client().sweep(Nanos::from_secs(1 << 30));
        assert_eq!(engine.client().counts().open, 0);
        drop(plan);
        let until = patience();
        // The service closes its ends of the connections when it sees the close.
        while (open_files(), alive()) > (files, tasks) && engine.timer().now() < until {
            engine.timer().sleep(ms(1)).await;
        }
        assert!(open_files() <= files && alive() <= tasks, "{files} {tasks} {} {}", open_files(), alive());
    });
}

#[test]
fn fifty_thousand_calls_leak_nothing() {
    leave_nothing(50_000, false);
}

#[test]
fn fifty_thousand_calls_as_values_leak_nothing() {
    leave_nothing(50_000, true);
}

#[test]
#[ignore = "for an idle machine and a release build"]
fn a_million_calls_leak_nothing() {
    leave_nothing(1_000_000, false);
}

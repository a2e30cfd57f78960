//! What the store of `weir send` can take: durable submits, a reopened million, claims and records.
//!
//! `cargo bench --bench store -- [JOBS_HEADING] [FOLDER]`, a million in the current folder if not said. The folder has to be on
//! a real disk: on a tmpfs a sync costs nothing.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "this is an edge: it reads the clock to time what it does")]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use weir::base::Nanos;
use weir::send::store::{
    ClaimRequest, JobChange, JobLane, JobOrder, JobStep, LaneClaim, MemoryStore, Options, QueueBounds, RecordRequest,
    SqliteStore, Store,
};
use weir::send::{Job, JobRequest, State, StoredAttempt, UnixMs};

const PRODUCERS: usize = 16;
const NOW: UnixMs = UnixMs(1_760_000_000_000);

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let jobs: usize = args.next().map_or(1_000_000, |jobs| jobs.parse().unwrap());
    let folder = args.next().unwrap_or_else(|| ".".into());
    let path = Path::new(&folder).join(format!("weir-bench-{}.db", std::process::id()));
    forget(&path);
    for (batch, outstanding, share) in [(1, 1, 50), (1, 64, 10), (10, 1, 10), (100, 1, 1)] {
        let store = open(&path);
        let n = jobs / share;
        let seconds = timed(|| submit(&store, n, batch, outstanding));
        told(&format!("submit, {PRODUCERS} x batches of {batch}, {outstanding} under way"), n, seconds);
        drop(store);
        if share != 1 {
            forget(&path);
        }
    }
    let started = Instant::now();
    let store = open(&path);
    store.start_sending(NOW).unwrap();
    assert_eq!(store.counts().unwrap().jobs_in(State::Queued), (jobs / PRODUCERS * PRODUCERS) as u64);
    store.claim(claim(1)).wait().unwrap();
    println!("reopen {jobs} jobs, take what is left, claim one: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let seconds = timed(|| drain(&store, jobs / PRODUCERS * PRODUCERS - 1));
    told("claim and record done, 1000 at a time", jobs, seconds);
    drop(store);
    forget(&path);
    let store = open(&path);
    store.start_sending(NOW).unwrap();
    told("submit, claim, done at once", jobs, timed(|| all(&store, jobs)));
    drop(store);
    forget(&path);
    println!("peak memory of SQLite's part: {} MiB", peak_kib() / 1024);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(QueueBounds::default(), JobOrder::Fifo));
    store.start_sending(NOW).unwrap();
    told("memory: submit", jobs, timed(|| submit(&store, jobs, 100, 1)));
    told("memory: claim and record done", jobs, timed(|| drain(&store, jobs / PRODUCERS * PRODUCERS)));
}

fn open(path: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(path, &Options::default()).unwrap())
}

fn all(store: &Arc<dyn Store>, jobs: usize) {
    thread::scope(|scope| {
        scope.spawn(|| submit(store, jobs, 100, 1));
        drain(store, jobs / PRODUCERS * PRODUCERS);
    });
}

fn submit(store: &Arc<dyn Store>, jobs: usize, batch: usize, outstanding: usize) {
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                let mut under_way = VecDeque::new();
                let mut left = jobs / PRODUCERS;
                while left > 0 {
                    let some = batch.min(left);
                    left -= some;
                    under_way.push_back(store.submit(vec![job(); some]));
                    if under_way.len() >= outstanding {
                        under_way.pop_front().unwrap().wait().unwrap();
                    }
                }
                under_way.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
            });
        }
    });
}

fn drain(store: &Arc<dyn Store>, jobs: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut arrivals = store.arrivals();
        let mut done = 0;
        let mut recording = None;
        while done < jobs {
            arrivals.borrow_and_update();
            let claimed = store.claim(claim(1000)).await.unwrap();
            if claimed.jobs.is_empty() {
                arrivals.changed().await.unwrap();
            }
            done += claimed.jobs.len();
            let changes = claimed.jobs.iter().map(|(lease, _)| JobChange {
                lease: *lease,
                at: NOW,
                reason: "200".into(),
                step: JobStep::Done,
                attempt: Some(StoredAttempt { key: Some("key-1".into()), sent_at: NOW, status: Some(200) }),
                response: None,
            });
            let ticket = store.record(RecordRequest { changes: changes.collect(), key_states: Vec::new() });
            if let Some(before) = recording.replace(ticket) {
                before.await.unwrap();
            }
        }
        if let Some(last) = recording {
            last.await.unwrap();
        }
    });
}

fn claim(most: usize) -> ClaimRequest {
    let wants = vec![LaneClaim { lane: JobLane::default(), max_jobs: most }];
    ClaimRequest { now: NOW, lease_duration: Nanos::from_secs(60), lanes: wants, max_bytes: u64::MAX, marks_sent: true }
}

/// About 200 bytes.
fn job() -> Job {
    Job {
        request: JobRequest {
            method: "POST".into(),
            url: "http://127.0.0.1:9999/api/request?api_key={key}&nonce={nonce}&req_id={id}".into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: vec![b'x'; 90],
            templates: Default::default(),
        },
        created_at: NOW,
        weight: 1,
        ..Job::default()
    }
}

/// Wall time and CPU time, in seconds.
fn timed(does: impl FnOnce()) -> (f64, f64) {
    let (started, cpu) = (Instant::now(), cpu_s());
    does();
    (started.elapsed().as_secs_f64(), cpu_s() - cpu)
}

fn told(what: &str, jobs: usize, (seconds, cpu): (f64, f64)) {
    let each = cpu * 1e6 / jobs as f64;
    println!("{what}: {:.0}/s, {each:.1} us of CPU each ({jobs} in {seconds:.2} s)", jobs as f64 / seconds);
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn forget(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-turn", "-sender"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}

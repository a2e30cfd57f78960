//! The script on a real Redis server, compared with its model in Rust.

#[path = "../../../../resilience/src/ratelimit/split/tests/model.rs"]
mod model;

use std::time::Duration;

use self::model::SplitTable as Oracle;
use super::renewal_error::RenewalError;
use super::table::RedisSplitTable;
use crate::config::DistributedLimitConfig;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_limits::fraction::Fraction;
use weir_redis::field;
use weir_resilience::ratelimit::split::{AllocationKey, AllocationRequest, SplitReply, SplitRequest};
use weir_testing::RedisServer;

const LEASE: Nanos = Nanos::from_secs(3600);

/// Gateways at a server, and the model in Rust, which gets the same requests.
struct TableWithModel {
    tables: Vec<(String, RedisSplitTable)>,
    model: Oracle,
}

impl TableWithModel {
    fn new(server: &RedisServer, gates: usize) -> Self {
        let run = server.say(&["INFO", "server"]);
        let run = field(&run, "run_id").unwrap();
        // A server that was never silent.
        server.say(&["HSET", "weir:cluster:test:meta", "run", run, "heard", "4102444800000", "settled", "0"]);
        let terms = DistributedLimitConfig::parse(&server.url("name=test&lease=1h")).unwrap();
        // A busy machine may let the server wait for longer than a gateway would.
        let table = || RedisSplitTable::new(&terms).unwrap().with_timeout(Duration::from_secs(60));
        let tables = (0..gates).map(|number| (format!("g{number}"), table())).collect();
        Self { tables, model: Oracle::new_settled(1) }
    }

    fn renew(&mut self, gate: usize, request: &SplitRequest) -> Option<SplitReply> {
        let (name, table) = &mut self.tables[gate];
        let expected = self.model.renew(Nanos::SECOND, 1, name, LEASE, request);
        match table.renew(request) {
            Ok(reply) => assert_eq!(Some(&reply), expected.as_ref(), "gate {gate}: {request:?}"),
            Err(RenewalError::Unreachable(why)) if why == "a later request came first" => {
                assert_eq!(expected, None, "{request:?}");
            }
            Err(why) => unreachable!("{why}"),
        }
        expected
    }
}

#[test]
fn the_script_replies_as_the_model() {
    let Some(server) = RedisServer::with(&[]) else { return };
    for seed in 0..8 {
        server.say(&["FLUSHALL"]);
        let mut both = TableWithModel::new(&server, 3);
        let mut rng = SeededRng::new(seed, 0);
        let mut below = |most: u64| rng.bits() % most;
        let mut known = [(0_u64, 0_u64, 0_u32, 0_u64); 3];
        let mut renewed = 0;
        for _ in 0..300 {
            let gate = below(3) as usize;
            let (number, last_reply, default, seen) = known[gate];
            let mut ask = SplitRequest {
                number: number + 1,
                last_reply,
                default_fraction: Fraction::from_parts(default),
                seen_change: seen,
                ..SplitRequest::default()
            };
            let what = below(24);
            match what {
                0 => ask.is_leaving = true,
                1 => ask.number = number,
                2 => ask.default_fraction = Fraction::from_parts(below(65_537) as u32),
                3 => ask.seen_change = below(seen + 1),
                _ => {}
            }
            let first = below(6);
            ask.allocations = (0..below(4))
                .map(|more| AllocationKey { limit: 1, key: (first + more) % 6 })
                .map(|allocation| {
                    // Half of the demands are small, so that allocations also end.
                    let demand = if below(2) == 0 { below(8000) } else { below(300_000) };
                    AllocationRequest {
                        allocation,
                        in_use: Fraction::from_parts(below(65_537) as u32),
                        demand: demand as u32,
                    }
                })
                .collect();
            let Some(reply) = both.renew(gate, &ask) else { continue };
            renewed += reply.allocations.iter().filter(|(_, fraction)| fraction.is_some()).count();
            known[gate] = match what {
                0 => (ask.number, ask.number, 0, 0),
                // The reply is lost.
                4..8 => (ask.number, last_reply, default, seen),
                _ => (ask.number, ask.number, reply.default_fraction.parts(), reply.seen_change),
            };
        }
        assert!(renewed > 100, "{renewed}");
    }
}

#[test]
fn a_gateway_that_joins_late_gets_all_allocations_page_by_page() {
    let Some(server) = RedisServer::with(&[]) else { return };
    let mut both = TableWithModel::new(&server, 2);
    let requests = |from: u64| {
        let asked = |key| AllocationRequest {
            allocation: AllocationKey { limit: 2, key },
            in_use: Fraction::WHOLE,
            demand: 70_000,
        };
        (from..from + 64).map(asked).collect::<Vec<_>>()
    };
    let mut first = SplitRequest::default();
    for number in 1..=6 {
        first = SplitRequest {
            number,
            last_reply: number - 1,
            default_fraction: first.default_fraction,
            seen_change: first.seen_change,
            allocations: requests(number * 64),
            ..first
        };
        let reply = both.renew(0, &first).unwrap();
        (first.default_fraction, first.seen_change) = (reply.default_fraction, reply.seen_change);
    }
    let (mut listed, mut seen) = (0, 0);
    for number in 1..=3 {
        let reply = both
            .renew(1, &SplitRequest { number, last_reply: number - 1, seen_change: seen, ..SplitRequest::default() })
            .unwrap();
        listed += reply.allocations.len();
        seen = reply.seen_change;
        assert_eq!(
            (listed, reply.has_more, reply.default_fraction),
            (128 * number as usize, number < 3, Fraction::NONE)
        );
    }
}

#[test]
fn an_unreachable_server_and_one_that_lost_its_data() {
    let Some(mut server) = RedisServer::with(&[]) else { return };
    let mut both = TableWithModel::new(&server, 1);
    both.renew(0, &SplitRequest { number: 1, ..SplitRequest::default() });
    let (_, table) = &mut both.tables[0];
    server.kill();
    let ask = SplitRequest { number: 2, default_fraction: Fraction::WHOLE, ..SplitRequest::default() };
    assert!(matches!(table.renew(&ask), Err(RenewalError::Unreachable(_))));
    assert!(matches!(table.renew(&ask), Err(RenewalError::Unreachable(_))));
    server.begin();
    // It has no data: allocations in use go on, and none grows before a lease is over.
    let reply = table.renew(&SplitRequest { number: 3, ..ask }).unwrap();
    assert_eq!((reply.joined, reply.default_fraction, reply.gates), (true, Fraction::WHOLE, 1));
    let terms = DistributedLimitConfig::parse(&server.url("name=test&lease=1h")).unwrap();
    let reply =
        RedisSplitTable::new(&terms).unwrap().renew(&SplitRequest { number: 1, ..SplitRequest::default() }).unwrap();
    assert_eq!((reply.joined, reply.default_fraction, reply.gates), (true, Fraction::NONE, 2));
}

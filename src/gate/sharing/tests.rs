//! The script on a real server.

use super::table::{RedisSplitTable, RenewalError};
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::decide::portion::table::SplitTable as Oracle;
use crate::decide::portion::{AllocationKey, AllocationRequest, Fraction, SplitReply, SplitRequest};
use crate::gate::config::DistributedLimitConfig;
use crate::redis::field;
use crate::redis::server::RedisServer;

const LEASE: Nanos = Nanos::from_secs(3600);

/// A server, gates that ask it, and the table in Rust, which is asked the same.
struct TableWithModel {
    tables: Vec<(String, RedisSplitTable)>,
    model: Oracle,
}

impl TableWithModel {
    fn new(server: &RedisServer, gates: usize) -> Self {
        let run = server.say(&["INFO", "server"]);
        let run = field(&run, "run_id").unwrap();
        // One that was never silent.
        server.say(&["HSET", "weir:share:test:meta", "run", run, "heard", "4102444800000", "settled", "0"]);
        let terms = DistributedLimitConfig::parse(&server.url("name=test&lease=1h")).unwrap();
        let tables = (0..gates).map(|number| (format!("g{number}"), RedisSplitTable::new(&terms).unwrap())).collect();
        Self { tables, model: Oracle::new_settled(1) }
    }

    fn renew(&mut self, gate: usize, ask: &SplitRequest) -> Option<SplitReply> {
        let (name, table) = &mut self.tables[gate];
        let told = self.model.renew(Nanos::SECOND, 1, name, LEASE, ask);
        match table.renew(ask) {
            Ok(said) => assert_eq!(Some(&said), told.as_ref(), "gate {gate}: {ask:?}"),
            Err(RenewalError::Unreachable(why)) if why == "it has heard a later question" => {
                assert_eq!(told, None, "{ask:?}");
            }
            Err(why) => unreachable!("{why}"),
        }
        told
    }
}

#[test]
fn the_script_says_what_the_table_says() {
    let Some(server) = RedisServer::with(&[]) else { return };
    for seed in 0..8 {
        server.say(&["FLUSHALL"]);
        let mut both = TableWithModel::new(&server, 3);
        let mut dice = Dice::new(seed, 0);
        let mut below = |most: u64| dice.bits() % most;
        let mut known = [(0_u64, 0_u64, 0_u32, 0_u64); 3];
        let mut deals = 0;
        for _ in 0..300 {
            let gate = below(3) as usize;
            let (number, heard, usual, seen) = known[gate];
            let mut ask = SplitRequest {
                number: number + 1,
                last_reply: heard,
                default_fraction: Fraction::from_parts(usual),
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
                .map(|claim| {
                    // In half of all cases little is wanted, so that claims end, too.
                    let wants = if below(2) == 0 { below(8000) } else { below(300_000) };
                    AllocationRequest {
                        allocation: claim,
                        in_use: Fraction::from_parts(below(65_537) as u32),
                        demand: wants as u32,
                    }
                })
                .collect();
            let Some(said) = both.renew(gate, &ask) else { continue };
            deals += said.allocations.iter().filter(|(_, portion)| portion.is_some()).count();
            known[gate] = match what {
                0 => (ask.number, ask.number, 0, 0),
                // The answer is lost.
                4..8 => (ask.number, heard, usual, seen),
                _ => (ask.number, ask.number, said.default_fraction.parts(), said.seen_change),
            };
        }
        assert!(deals > 100, "{deals}");
    }
}

#[test]
fn who_comes_late_is_told_of_all_claims_page_by_page() {
    let Some(server) = RedisServer::with(&[]) else { return };
    let mut both = TableWithModel::new(&server, 2);
    let claims = |from: u64| {
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
            allocations: claims(number * 64),
            ..first
        };
        let said = both.renew(0, &first).unwrap();
        (first.default_fraction, first.seen_change) = (said.default_fraction, said.seen_change);
    }
    let (mut told, mut seen) = (0, 0);
    for number in 1..=3 {
        let said = both
            .renew(1, &SplitRequest { number, last_reply: number - 1, seen_change: seen, ..SplitRequest::default() })
            .unwrap();
        told += said.allocations.len();
        seen = said.seen_change;
        assert_eq!((told, said.has_more, said.default_fraction), (128 * number as usize, number < 3, Fraction::NONE));
    }
}

#[test]
fn a_server_that_is_not_there_and_one_that_begins_anew() {
    let Some(mut server) = RedisServer::with(&[]) else { return };
    let mut both = TableWithModel::new(&server, 1);
    both.renew(0, &SplitRequest { number: 1, ..SplitRequest::default() });
    let (_, table) = &mut both.tables[0];
    server.kill();
    let ask = SplitRequest { number: 2, default_fraction: Fraction::WHOLE, ..SplitRequest::default() };
    assert!(matches!(table.renew(&ask), Err(RenewalError::Unreachable(_))));
    assert!(matches!(table.renew(&ask), Err(RenewalError::Unreachable(_))));
    server.begin();
    // It knows nothing: what is used goes on, and nobody is given anything before a lease is over.
    let said = table.renew(&SplitRequest { number: 3, ..ask }).unwrap();
    assert_eq!((said.joined, said.default_fraction, said.gates), (true, Fraction::WHOLE, 1));
    let terms = DistributedLimitConfig::parse(&server.url("name=test&lease=1h")).unwrap();
    let said =
        RedisSplitTable::new(&terms).unwrap().renew(&SplitRequest { number: 1, ..SplitRequest::default() }).unwrap();
    assert_eq!((said.joined, said.default_fraction, said.gates), (true, Fraction::NONE, 2));
}

//! The script on a real server.

use super::table::{NoAnswer, Table};
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::decide::portion::table::Table as Oracle;
use crate::decide::portion::{Ask, Asked, Claim, Portion, Said};
use crate::gate::config::ShareConfig;
use crate::redis::field;
use crate::redis::server::RedisServer;

const LEASE: Nanos = Nanos::from_secs(3600);

/// A server, gates that ask it, and the table in Rust, which is asked the same.
struct Both {
    gates: Vec<(String, Table)>,
    oracle: Oracle,
}

impl Both {
    fn new(server: &RedisServer, gates: usize) -> Self {
        let run = server.say(&["INFO", "server"]);
        let run = field(&run, "run_id").unwrap();
        // One that was never silent.
        server.say(&["HSET", "weir:share:test:meta", "run", run, "heard", "4102444800000", "settled", "0"]);
        let terms = ShareConfig::read(&server.url("name=test&lease=1h")).unwrap();
        let gates = (0..gates).map(|number| (format!("g{number}"), Table::new(&terms).unwrap())).collect();
        Self { gates, oracle: Oracle::settled(1) }
    }

    fn ask(&mut self, gate: usize, ask: &Ask) -> Option<Said> {
        let (name, table) = &mut self.gates[gate];
        let told = self.oracle.renew(Nanos::SECOND, 1, name, LEASE, ask);
        match table.renew(ask) {
            Ok(said) => assert_eq!(Some(&said), told.as_ref(), "gate {gate}: {ask:?}"),
            Err(NoAnswer::Away(why)) if why == "it has heard a later question" => assert_eq!(told, None, "{ask:?}"),
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
        let mut both = Both::new(&server, 3);
        let mut dice = Dice::new(seed, 0);
        let mut below = |most: u64| dice.bits() % most;
        let mut known = [(0_u64, 0_u64, 0_u32, 0_u64); 3];
        let mut deals = 0;
        for _ in 0..300 {
            let gate = below(3) as usize;
            let (number, heard, usual, seen) = known[gate];
            let mut ask = Ask { number: number + 1, heard, usual: Portion::of(usual), seen, ..Ask::default() };
            let what = below(24);
            match what {
                0 => ask.leaves = true,
                1 => ask.number = number,
                2 => ask.usual = Portion::of(below(65_537) as u32),
                3 => ask.seen = below(seen + 1),
                _ => {}
            }
            let first = below(6);
            ask.claims = (0..below(4))
                .map(|more| Claim { limit: 1, key: (first + more) % 6 })
                .map(|claim| {
                    // In half of all cases little is wanted, so that claims end, too.
                    let wants = if below(2) == 0 { below(8000) } else { below(300_000) };
                    Asked { claim, holds: Portion::of(below(65_537) as u32), wants: wants as u32 }
                })
                .collect();
            let Some(said) = both.ask(gate, &ask) else { continue };
            deals += said.claims.iter().filter(|(_, portion)| portion.is_some()).count();
            known[gate] = match what {
                0 => (ask.number, ask.number, 0, 0),
                // The answer is lost.
                4..8 => (ask.number, heard, usual, seen),
                _ => (ask.number, ask.number, said.usual.parts(), said.seen),
            };
        }
        assert!(deals > 100, "{deals}");
    }
}

#[test]
fn who_comes_late_is_told_of_all_claims_page_by_page() {
    let Some(server) = RedisServer::with(&[]) else { return };
    let mut both = Both::new(&server, 2);
    let claims = |from: u64| {
        let asked = |key| Asked { claim: Claim { limit: 2, key }, holds: Portion::WHOLE, wants: 70_000 };
        (from..from + 64).map(asked).collect::<Vec<_>>()
    };
    let mut first = Ask::default();
    for number in 1..=6 {
        first = Ask {
            number,
            heard: number - 1,
            usual: first.usual,
            seen: first.seen,
            claims: claims(number * 64),
            ..first
        };
        let said = both.ask(0, &first).unwrap();
        (first.usual, first.seen) = (said.usual, said.seen);
    }
    let (mut told, mut seen) = (0, 0);
    for number in 1..=3 {
        let said = both.ask(1, &Ask { number, heard: number - 1, seen, ..Ask::default() }).unwrap();
        told += said.claims.len();
        seen = said.seen;
        assert_eq!((told, said.more, said.usual), (128 * number as usize, number < 3, Portion::NONE));
    }
}

#[test]
fn a_server_that_is_not_there_and_one_that_begins_anew() {
    let Some(mut server) = RedisServer::with(&[]) else { return };
    let mut both = Both::new(&server, 1);
    both.ask(0, &Ask { number: 1, ..Ask::default() });
    let (_, table) = &mut both.gates[0];
    server.kill();
    let ask = Ask { number: 2, usual: Portion::WHOLE, ..Ask::default() };
    assert!(matches!(table.renew(&ask), Err(NoAnswer::Away(_))));
    assert!(matches!(table.renew(&ask), Err(NoAnswer::Away(_))));
    server.begin();
    // It knows nothing: what is used goes on, and nobody is given anything before a lease is over.
    let said = table.renew(&Ask { number: 3, ..ask }).unwrap();
    assert_eq!((said.joined, said.usual, said.gates), (true, Portion::WHOLE, 1));
    let terms = ShareConfig::read(&server.url("name=test&lease=1h")).unwrap();
    let said = Table::new(&terms).unwrap().renew(&Ask { number: 1, ..Ask::default() }).unwrap();
    assert_eq!((said.joined, said.usual, said.gates), (true, Portion::NONE, 2));
}

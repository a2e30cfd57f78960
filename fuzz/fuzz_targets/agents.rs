//! Lines of agents: nothing panics, whatever they say in whatever order; what is no news says why in one line; books that
//! were closed can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::agents::Ledger;
use weir::agents::speech::{News, Order, news, next_line};
use weir::decide::Nanos;
use weir::measure::parcel::{Parcel, Slip};

fuzz_target!(|bytes: &[u8]| {
    let nodes = ["a", "b", "c"].map(str::to_owned);
    let mut ledger = Ledger::new(&nodes, Nanos::SECOND, Nanos::ZERO);
    let mut from = bytes;
    let mut number = 0;
    while let Ok(Some(line)) = next_line(&mut from) {
        // The first byte says who speaks.
        let agent = usize::from(line.bytes().next().unwrap_or(0)) % 4;
        let rest = line.get(1..).unwrap_or_default();
        if let Ok(order) = serde_json::from_str::<Order>(rest) {
            let again = serde_json::to_string(&order).expect("an order is JSON");
            assert_eq!(serde_json::from_str::<Order>(&again).expect("own words"), order);
        }
        let told = match news(rest) {
            Ok(told) => told,
            Err(why) => {
                assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}");
                continue;
            }
        };
        opened(&told);
        number += 1;
        ledger.ask(agent, number, Nanos(number));
        if let Err(why) = ledger.take(agent, told, Nanos(number + 5)) {
            ledger.lose(agent, why);
        }
        let _ = (ledger.offset(agent).theirs(Nanos(number)), ledger.silent_since(Nanos(number)), ledger.running());
    }
    let gathered = ledger.close(Some(Nanos(number)), false);
    let _ = gathered.series.points(1.0);
    let totals = &gathered.driven.counted.totals;
    assert!(totals.answers() <= totals.requests && totals.ok <= totals.answers());
});

/// What can be opened is packed again as it was.
fn opened(told: &News) {
    match told {
        News::Stretch(_, slip) | News::Rest(_, slip) => {
            if let Ok(interval) = slip.open() {
                assert!(Slip::of(&interval).open().is_ok());
            }
        }
        News::Done(parcel) => {
            if let Ok(counted) = parcel.open() {
                assert!(Parcel::of(&counted).open().is_ok());
            }
        }
        _ => {}
    }
}

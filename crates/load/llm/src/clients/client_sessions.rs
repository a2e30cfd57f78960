//! Sessions of several clients.

use weir_base::Nanos;
use weir_base::rng::SeededRng;

use super::client_arrivals::{ClientArrival, ClientArrivals};
use super::client_mix::ClientMix;
use super::load_client::{LoadClient, MAX_TURNS, MIN_TURNS};
use crate::random_prompts::stream;
use crate::trace::{PromptPiece, TracePrompt, TraceSession, TraceTurn, TurnDependency, TurnTrigger, name_hash};

/// Stream of random numbers that a client's sessions are made from.
const SESSION_SALT: u64 = 0x6c6c_6d0c;

/// Sessions of all clients with their arrivals, in the order of time.
///
/// The prompt of a turn repeats what was said before, the responses included: it has the client's prefix, a piece for
/// each turn before it, as long as that turn's new text and its response, and a piece of its own.
#[derive(Clone, Debug)]
pub struct ClientSessions {
    clients: Vec<LoadClient>,
    seeds: Vec<u64>,
    arrivals: ClientArrivals,
    /// Number of requests so far.
    requests: u64,
}

impl ClientSessions {
    /// Sessions of a composition, by seed.
    pub fn new(mix: ClientMix, seed: u64) -> Self {
        let seeds = mix.clients.iter().map(|client| client.seed(seed)).collect();
        let arrivals = ClientArrivals::new(&mix, seed);
        Self { clients: mix.clients, seeds, arrivals, requests: 0 }
    }

    /// Session of an arrival.
    fn session(&mut self, arrival: ClientArrival) -> Option<TraceSession> {
        let client = self.clients.get(arrival.client)?;
        let mut rng = stream(*self.seeds.get(arrival.client)?, SESSION_SALT, arrival.number);
        let name = rng.bits();
        let mut pieces = Vec::new();
        if client.prefix_tokens > 0 {
            pieces.push(PromptPiece { name: name_hash(&client.name), tokens: client.prefix_tokens });
        }
        let mut turns = Vec::new();
        for number in 0..turn_count(client, &mut rng) {
            let (input, output) = (client.input.draw(&mut rng), client.output.draw(&mut rng));
            let delay = if number > 0 { client.think.sample(&mut rng) } else { Nanos::ZERO };
            let before = u32::try_from(number).ok().and_then(|number| number.checked_sub(1));
            let after = before.map(|turn| TurnDependency { turn, trigger: TurnTrigger::End, delay });
            // The piece of a turn begins with the words of the turn, whatever its length.
            let own = PromptPiece { name: name.wrapping_add(number), tokens: input };
            let prompt: Box<[PromptPiece]> = pieces.iter().copied().chain([own]).collect();
            turns.push(TraceTurn {
                number: self.requests,
                session: Some(name),
                after: after.into_iter().collect(),
                not_before: Nanos::ZERO,
                input_tokens: prompt.iter().map(|piece| piece.tokens).sum(),
                output_tokens: output,
                prompt: TracePrompt::Pieces(prompt),
            });
            self.requests += 1;
            pieces.push(PromptPiece { tokens: input + output, ..own });
        }
        let mut turns = turns.into_iter();
        let client = u32::try_from(arrival.client).ok()?;
        let at = i64::try_from(arrival.at.0).unwrap_or(i64::MAX);
        Some(TraceSession { client, arrival: at, first: turns.next()?, later: turns.collect() })
    }
}

impl Iterator for ClientSessions {
    type Item = (Nanos, TraceSession);

    fn next(&mut self) -> Option<Self::Item> {
        let arrival = self.arrivals.next()?;
        Some((arrival.at, self.session(arrival)?))
    }
}

/// Number of turns of a session.
fn turn_count(client: &LoadClient, rng: &mut SeededRng) -> u64 {
    // `unit` is above 0.
    match rng.unit() <= client.conversations {
        true => client.turns.draw(rng).clamp(MIN_TURNS, MAX_TURNS),
        false => 1,
    }
}

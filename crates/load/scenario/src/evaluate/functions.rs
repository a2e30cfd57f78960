//! Functions of templates. All random values come from the seed of the run.

use weir_base::rng::SeededRng;
use weir_hurl::{PlainFunction, TemplateFunction};

use super::dates;
use super::template::RenderContext;
use crate::value::Value;

const FIRST_NAMES: [&str; 8] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Ken", "Leslie", "Margaret"];
const LAST_NAMES: [&str; 8] = ["Hamilton", "Hopper", "Dijkstra", "Lamport", "Liskov", "Lovelace", "Thompson", "Turing"];
const WORDS: [&str; 8] = ["basin", "brook", "delta", "estuary", "lock", "river", "stream", "weir"];
const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Maximum length of a random text, in characters.
const MAX_RANDOM_CHARS: u64 = 1 << 20;

/// Value of a function.
pub(super) fn evaluate(function: &TemplateFunction, context: &mut RenderContext<'_>) -> Value {
    let rng = &mut *context.rng;
    match function {
        TemplateFunction::RandomInt { min, max } => Value::Integer(random_int(rng, *min, *max)),
        TemplateFunction::RandomString { length } => {
            let letters = (0..(*length).min(MAX_RANDOM_CHARS)).map(|_| char::from(*choice(rng, ALPHANUMERIC)));
            Value::Text(letters.collect())
        }
        TemplateFunction::Plain(function) => match function {
            PlainFunction::NewDate => Value::Date(dates::of_unix(context.unix_s)),
            PlainFunction::NewUuid => Value::Text(uuid(rng)),
            PlainFunction::RandomBool => Value::Bool(rng.bits() & 1 == 1),
            PlainFunction::RandomFirstName => Value::text(*choice(rng, &FIRST_NAMES)),
            PlainFunction::RandomLastName => Value::text(*choice(rng, &LAST_NAMES)),
            PlainFunction::RandomFullName => {
                Value::Text(format!("{} {}", choice(rng, &FIRST_NAMES), choice(rng, &LAST_NAMES)))
            }
            PlainFunction::RandomWord => Value::text(*choice(rng, &WORDS)),
            PlainFunction::RandomEmail => {
                let name = choice(rng, &FIRST_NAMES).to_lowercase();
                Value::Text(format!("{name}.{}@example.com", rng.below(1_000_000)))
            }
        },
    }
}

fn choice<'a, T>(rng: &mut SeededRng, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len())]
}

fn random_int(rng: &mut SeededRng, min: i64, max: i64) -> i64 {
    let span = max.wrapping_sub(min) as u64;
    let offset = match span.checked_add(1) {
        // 64 random bits modulo a span are uneven by less than 1 in 2^11 for spans below 2^53.
        Some(span) => rng.bits() % span,
        None => rng.bits(),
    };
    min.wrapping_add(offset as i64)
}

fn uuid(rng: &mut SeededRng) -> String {
    let (high, low) = (rng.bits(), rng.bits());
    let (high, low) = (high & !0xF000 | 0x4000, low & !(0b11 << 62) | 0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_integers_are_within_their_bounds_and_reach_them() {
        let mut rng = SeededRng::new(1, 2);
        let mut seen = [false; 3];
        for _ in 0..100 {
            seen[usize::try_from(random_int(&mut rng, -1, 1) + 1).expect("within the bounds")] = true;
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(random_int(&mut rng, 5, 5), 5);
        random_int(&mut rng, i64::MIN, i64::MAX);
    }

    #[test]
    fn identifiers_are_of_version_4_and_their_seed() {
        let id = uuid(&mut SeededRng::new(1, 2));
        assert_eq!(id, uuid(&mut SeededRng::new(1, 2)));
        assert_ne!(id, uuid(&mut SeededRng::new(1, 3)));
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"));
    }
}

//! Mix of a log: its routes by how often it has them, each with a sample of its targets.

use std::collections::HashMap;

use super::access_record::AccessRecord;
use super::route_table::route;
use weir_base::rng::SeededRng;

/// Routes that are counted, and targets that are kept of each: bounds of memory.
const MAX_COUNTED_ROUTES: usize = 2_000;
const MAX_SAMPLED_TARGETS: usize = 200;
const SAMPLE_SALT: u64 = 0x6d69_7866;

/// Mix of a log: its routes by how often it has them, each with a random sample of its targets.
#[derive(Clone, Debug)]
pub struct RouteMix {
    routes: HashMap<String, MixedRoute>,
    requests: u64,
    rng: SeededRng,
}

/// Route with its number of requests in a log, and a sample of their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedRoute {
    /// Method and path with `:id` in place of identifiers.
    pub name: String,
    /// Method.
    pub method: String,
    /// Number of its requests.
    pub requests: u64,
    /// Sample of its targets, as often as the log has them; never empty.
    pub targets: Vec<Box<str>>,
}

impl RouteMix {
    /// Mix of no requests.
    pub fn new(seed: u64) -> Self {
        Self { routes: HashMap::new(), requests: 0, rng: SeededRng::new(seed, SAMPLE_SALT) }
    }

    /// Counts a request.
    pub fn add(&mut self, record: &AccessRecord) {
        self.requests += 1;
        let name = route(&record.method, record.path());
        let has_room = self.routes.len() < MAX_COUNTED_ROUTES;
        let Some(mixed) = self.routes.get_mut(&name) else {
            if has_room {
                let (method, targets) = (record.method.to_string(), vec![record.target.clone()]);
                self.routes.insert(name.clone(), MixedRoute { name, method, requests: 1, targets });
            }
            return;
        };
        mixed.requests += 1;
        if mixed.targets.len() < MAX_SAMPLED_TARGETS {
            mixed.targets.push(record.target.clone());
            return;
        }
        // Each of the n requests is in the sample with the same probability (Vitter's algorithm R).
        let place = self.rng.below(usize::try_from(mixed.requests).unwrap_or(usize::MAX));
        if let Some(target) = mixed.targets.get_mut(place) {
            target.clone_from(&record.target);
        }
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The `most` most frequent routes, the most frequent first.
    pub fn into_routes(self, most: usize) -> Vec<MixedRoute> {
        let mut routes: Vec<MixedRoute> = self.routes.into_values().collect();
        routes.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.name.cmp(&b.name)));
        routes.truncate(most);
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_format::AccessFormat;

    fn record(path: &str) -> AccessRecord {
        let format: AccessFormat = "common".parse().expect("a format");
        let line = format!("::1 - - [10/Oct/2000:13:55:36 -0700] \"GET {path} HTTP/1.0\" 200 5");
        format.record(&line).expect("a record")
    }

    #[test]
    fn routes_have_their_numbers_and_a_sample_of_their_targets() {
        let mut mix = RouteMix::new(1);
        (0..3_000).for_each(|n| mix.add(&record(&format!("/items/{n}"))));
        (0..1_000).for_each(|n| mix.add(&record(if n % 10 == 0 { "/a?x=1" } else { "/a" })));
        mix.add(&record("/rare"));
        assert_eq!(mix.requests(), 4_001);
        let routes = mix.into_routes(2);
        let counted: Vec<(&str, u64)> = routes.iter().map(|route| (route.name.as_str(), route.requests)).collect();
        assert_eq!(counted, [("GET /items/:id", 3_000), ("GET /a", 1_000)]);
        let late = routes[0].targets.iter().filter(|target| target[7..].parse::<u32>().expect("a number") >= 1_500);
        assert!((70..130).contains(&late.count()), "half of the sample is of the second half");
        let with_query = routes[1].targets.iter().filter(|target| target.contains('?')).count();
        assert!((8..=35).contains(&with_query), "{with_query} of 200, a tenth of the log");
    }

    #[test]
    fn memory_is_bounded() {
        let mut mix = RouteMix::new(1);
        (0..3_000).for_each(|n| mix.add(&record(&format!("/page{}", "x".repeat(n % 2_500)))));
        assert!(mix.routes.len() <= MAX_COUNTED_ROUTES);
        assert_eq!(mix.requests(), 3_000);
    }
}

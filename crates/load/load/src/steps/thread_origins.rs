//! Origins that a thread has met.

use weir_net::target::SocketAddress;
use weir_net::tls::Tls;
use weir_scenario::plan::{OriginId, OriginTable};

use super::{ResolvedOrigin, ScenarioMix};

/// Origins of each scenario, with those of variables and redirects that a thread has met.
#[derive(Debug)]
pub(super) struct ThreadOrigins {
    tables: Vec<OriginTable>,
    addresses: Vec<Vec<Option<ResolvedOrigin>>>,
}

impl ThreadOrigins {
    /// Origins that the scenarios name.
    pub(super) fn new(mix: &ScenarioMix) -> Self {
        let addresses = mix.scenarios.iter().map(|scenario| scenario.addresses.iter().cloned().map(Some).collect());
        Self {
            tables: mix.scenarios.iter().map(|scenario| scenario.plan.origins.clone()).collect(),
            addresses: addresses.collect(),
        }
    }

    /// Origins of a scenario.
    pub(super) fn table(&mut self, scenario: u32) -> Option<&mut OriginTable> {
        self.tables.get_mut(scenario as usize)
    }

    /// Addresses of an origin; one that the plan does not know is resolved now, once.
    pub(super) fn address(
        &mut self,
        mix: &ScenarioMix,
        scenario: u32,
        origin: OriginId,
    ) -> Result<&ResolvedOrigin, String> {
        let (Some(known), Some(table)) =
            (self.addresses.get_mut(scenario as usize), self.tables.get(scenario as usize))
        else {
            return Err("unknown scenario".into());
        };
        let at = origin.0 as usize;
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        let slot = &mut known[at];
        match slot {
            Some(address) => Ok(address),
            None => {
                let origin = table.get(origin).ok_or("unknown origin")?;
                let resolved = mix.resolver.resolve(origin).map_err(|error| error.to_string())?;
                Ok(slot.insert(resolved))
            }
        }
    }

    /// TLS of an origin whose addresses are known.
    pub(super) fn tls(&self, scenario: u32, origin: OriginId) -> Option<&Tls> {
        self.addresses.get(scenario as usize)?.get(origin.0 as usize)?.as_ref()?.tls.as_ref()
    }

    /// IP address of an origin whose addresses are known; empty for others.
    pub(super) fn ip(&self, scenario: u32, origin: OriginId) -> String {
        let known = self.addresses.get(scenario as usize).and_then(|known| known.get(origin.0 as usize));
        match known.and_then(|address| address.as_ref()?.addresses.preferred()) {
            Some(SocketAddress::Inet(address)) => address.ip().to_string(),
            Some(SocketAddress::Unix(_)) | None => String::new(),
        }
    }

    /// Origin as text.
    pub(super) fn name(&self, scenario: u32, origin: OriginId) -> String {
        let table = self.tables.get(scenario as usize);
        table.and_then(|table| table.get(origin)).map(ToString::to_string).unwrap_or_default()
    }
}

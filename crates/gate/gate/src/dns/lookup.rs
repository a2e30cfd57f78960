//! Look-ups of one host's name: all the questions that lead to its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use tokio::task::JoinSet;

use super::client::{DnsClient, LookupError};
use super::hosts_file;
use super::message::{DnsQuestion, DnsRecords, RecordKind};
use super::name::DnsName;
use super::servers::DnsServers;
use super::service::{ServiceStep, TargetAddresses, service_step};
use weir_machine::timer::Timer;

/// Time after which the file of names is read again, in seconds.
const HOSTS_FILE_TTL_S: u32 = 5;

/// Name of a host as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LookupName {
    /// A name with addresses, and the port at them.
    Host(String, u16),
    /// A name with SRV records.
    Service(String),
}

/// Addresses that a name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedAddresses {
    /// Addresses and their weights, at least one.
    pub(crate) hosts: BTreeMap<SocketAddr, u32>,
    /// How long this is valid, in seconds.
    pub(crate) ttl_s: u32,
    /// Why a part of it is from an earlier response, or missing.
    pub(crate) partial_failure: Option<String>,
}

/// Look-ups of a name, with what was found last.
pub(crate) struct NameLookup {
    name: LookupName,
    /// Servers to ask; empty: the system's.
    servers: Vec<SocketAddr>,
    timer: Timer,
    /// Addresses that were found last: a question that fails does not take them away.
    last: BTreeMap<(DnsName, RecordKind), Vec<IpAddr>>,
}

/// Addresses of one name, of both families.
struct FoundAddresses {
    addresses: Vec<IpAddr>,
    ttl_s: u32,
    failure: Option<String>,
}

type FamilyOutcomes = [(RecordKind, Result<DnsRecords, LookupError>); 2];

impl NameLookup {
    /// Look-ups of a name at these servers; at the system's if there are none.
    pub(crate) fn new(name: LookupName, servers: Vec<SocketAddr>, timer: &Timer) -> Self {
        Self { name, servers, timer: timer.clone(), last: BTreeMap::new() }
    }

    /// Asks for the name.
    ///
    /// # Errors
    /// Reason why the name has no hosts.
    pub(crate) async fn resolve(&mut self) -> Result<ResolvedAddresses, String> {
        let (LookupName::Host(text, _) | LookupName::Service(text)) = self.name.clone();
        let servers = if self.servers.is_empty() {
            if let LookupName::Host(_, port) = self.name {
                let addresses = hosts_file::addresses(&system_file("/etc/hosts").await, &text);
                if !addresses.is_empty() {
                    let hosts = with_port(&addresses, port);
                    return Ok(ResolvedAddresses { hosts, ttl_s: HOSTS_FILE_TTL_S, partial_failure: None });
                }
            }
            DnsServers::parse(&system_file("/etc/resolv.conf").await)
        } else {
            DnsServers::of_addresses(self.servers.clone())
        };
        let candidates = servers.candidates(&text);
        let client = DnsClient::new(servers, &self.timer);
        let mut absent = None;
        for name in candidates {
            let found = match self.name {
                LookupName::Host(_, port) => self.host(&client, &name, port).await,
                LookupName::Service(_) => self.service(&client, &name).await,
            };
            match found {
                Ok(found) => return Ok(found),
                // Another name would be another service: it is not asked for before this one is known not to exist.
                Err(LookupError::Failed(why)) => return Err(why),
                Err(error) => absent = absent.or(Some(error)),
            }
        }
        Err(absent.map_or_else(|| "invalid name for DNS".to_owned(), |error| error.to_string()))
    }

    async fn host(&mut self, client: &DnsClient, name: &DnsName, port: u16) -> Result<ResolvedAddresses, LookupError> {
        let outcomes = ask_families(client, name).await;
        let found = self.combine(name, outcomes)?;
        self.forget_all_but(&BTreeSet::from([name]));
        Ok(ResolvedAddresses {
            hosts: with_port(&found.addresses, port),
            ttl_s: found.ttl_s,
            partial_failure: found.failure,
        })
    }

    async fn service(&mut self, client: &DnsClient, name: &DnsName) -> Result<ResolvedAddresses, LookupError> {
        let question = DnsQuestion { name: name.clone(), kind: RecordKind::Srv };
        let records = client.ask(&question).await?;
        let mut ttl_s = records.ttl_s;
        let mut failure: Option<String> = None;
        let mut targets: BTreeMap<DnsName, TargetAddresses> = BTreeMap::new();
        for (target, addresses) in self.addresses_along(&records) {
            targets.insert(target, TargetAddresses::Found(addresses));
        }
        loop {
            match service_step(&records.services, &targets) {
                ServiceStep::Ask(names) => {
                    for (target, outcomes) in ask_all(client, names).await {
                        let known = match self.combine(&target, outcomes) {
                            Ok(found) => {
                                ttl_s = ttl_s.min(found.ttl_s);
                                failure = failure.or(found.failure);
                                TargetAddresses::Found(found.addresses)
                            }
                            Err(LookupError::Failed(why)) => {
                                failure = failure.or(Some(format!("{target}: {why}")));
                                match self.last_addresses(&target) {
                                    addresses if addresses.is_empty() => TargetAddresses::Failed,
                                    addresses => TargetAddresses::Found(addresses),
                                }
                            }
                            Err(_) => TargetAddresses::Absent,
                        };
                        targets.insert(target, known);
                    }
                }
                ServiceStep::Hosts(hosts) => {
                    self.forget_all_but(&targets.keys().collect());
                    return Ok(ResolvedAddresses { hosts, ttl_s, partial_failure: failure });
                }
                ServiceStep::Failed => return Err(LookupError::Failed(failure.unwrap_or_default())),
                ServiceStep::Absent => return Err(LookupError::NoTarget),
            }
        }
    }

    /// Addresses of targets that came with a service's records, also for the time when they do not.
    fn addresses_along(&mut self, records: &DnsRecords) -> BTreeMap<DnsName, Vec<IpAddr>> {
        let mut all: BTreeMap<DnsName, Vec<IpAddr>> = BTreeMap::new();
        for along in &records.target_addresses {
            all.entry(along.target.clone()).or_default().push(along.address);
        }
        for (target, addresses) in &all {
            for kind in [RecordKind::A, RecordKind::Aaaa] {
                let of_kind = addresses.iter().copied().filter(|address| RecordKind::of(*address) == kind);
                self.last.insert((target.clone(), kind), of_kind.collect());
            }
        }
        all
    }

    /// Addresses of both families: of one whose question has failed those that it had. Without
    /// any success the name has none, or a question has failed.
    fn combine(&mut self, name: &DnsName, outcomes: FamilyOutcomes) -> Result<FoundAddresses, LookupError> {
        let mut found = FoundAddresses { addresses: Vec::new(), ttl_s: u32::MAX, failure: None };
        let (mut has_success, mut absent) = (false, None);
        for (kind, outcome) in outcomes {
            let key = (name.clone(), kind);
            match outcome {
                Ok(records) => {
                    has_success = true;
                    found.ttl_s = found.ttl_s.min(records.ttl_s);
                    found.addresses.extend(&records.addresses);
                    self.last.insert(key, records.addresses);
                }
                Err(LookupError::Failed(why)) => {
                    found.failure = found.failure.or(Some(why));
                    found.addresses.extend(self.last.get(&key).into_iter().flatten());
                }
                Err(error) => {
                    self.last.remove(&key);
                    absent = Some(match (absent, error) {
                        (Some(LookupError::NoRecord(..)), LookupError::NoRecord(_, server)) => {
                            LookupError::NoAddress(server)
                        }
                        (before, error) => before.unwrap_or(error),
                    });
                }
            }
        }
        match (found.failure.take(), absent) {
            (failure, _) if has_success => Ok(FoundAddresses { failure, ..found }),
            (Some(why), _) => Err(LookupError::Failed(why)),
            (None, absent) => Err(absent.unwrap_or(LookupError::NoTarget)),
        }
    }

    fn last_addresses(&self, name: &DnsName) -> Vec<IpAddr> {
        let of = |kind| self.last.get(&(name.clone(), kind)).into_iter().flatten().copied();
        of(RecordKind::A).chain(of(RecordKind::Aaaa)).collect()
    }

    /// Targets that a service has no more are not remembered.
    fn forget_all_but(&mut self, names: &BTreeSet<&DnsName>) {
        self.last.retain(|(name, _), _| names.contains(name));
    }
}

fn with_port(addresses: &[IpAddr], port: u16) -> BTreeMap<SocketAddr, u32> {
    addresses.iter().map(|address| (SocketAddr::new(*address, port), 1)).collect()
}

async fn ask_families(client: &DnsClient, name: &DnsName) -> FamilyOutcomes {
    let question = |kind| DnsQuestion { name: name.clone(), kind };
    let (v4, v6) = (question(RecordKind::A), question(RecordKind::Aaaa));
    let (first, second) = tokio::join!(client.ask(&v4), client.ask(&v6));
    [(RecordKind::A, first), (RecordKind::Aaaa, second)]
}

/// Asks for the addresses of several names at the same time.
async fn ask_all(client: &DnsClient, names: Vec<DnsName>) -> Vec<(DnsName, FamilyOutcomes)> {
    let mut tasks = JoinSet::new();
    for name in &names {
        let (client, name) = (client.clone(), name.clone());
        tasks.spawn_local(async move {
            let outcomes = ask_families(&client, &name).await;
            (name, outcomes)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.extend(done.ok());
    }
    // A name without an outcome would be asked for without end.
    for name in names.into_iter().filter(|name| !all.iter().any(|(known, _)| known == name)).collect::<Vec<_>>() {
        let failed = || Err(LookupError::Failed("the lookup was abandoned".to_owned()));
        all.push((name, [(RecordKind::A, failed()), (RecordKind::Aaaa, failed())]));
    }
    all
}

/// Contents of a file of the system's, which may be on a slow disk; empty if it cannot be read, as for the system's own
/// resolver.
async fn system_file(path: &'static str) -> String {
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    read.ok().and_then(Result::ok).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

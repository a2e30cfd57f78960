"""Several `weir send` that share a queue and its keys on a Redis server, and a single one with its jobs there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness import queues, redis_server, sending
from harness.redis_server import Redis
from harness.sender import jobs, scratch, served
from harness.senders import Results, Sender, Senders
from harness.sending import REFERENCE, WARMUP_S, WAY_MS, WINDOW_S, Count, stats
from harness.servers import StartError
from harness.trial import Bench, Trial, rounds

UNLIMITED = "no limit, through Redis"
#: Contenders, by the durability of Redis.
IN_MEMORY, ON_DISK = "weir send, Redis in memory", "weir send, Redis synced each second"
DURABILITY = {IN_MEMORY: redis_server.NOTHING, ON_DISK: redis_server.EVERY_SECOND}
#: Peers of the goal.
PEERS = ("Dramatiq", "taskiq")
SHARED, KILLED = "the reference rate-limited API, shared", "kill -9 of one of 4 senders"
SENDERS = (1, 4)
LEASE_S = 3.0
#: Maximum time from a kill until another sender uses the keys of the killed one.
BOUND_S = LEASE_S + WINDOW_S + WAY_MS / 1000
QUEUE = "bench"
TIMEOUT_S = 60.0
#: Maximum time between two kills in a run without errors: a new sender gets a key, and is killed within its bound.
KILL_S = 12.0
LOOK_S = 0.05


def label(count: int) -> str:
    """Return the name in the tables."""
    return f"{count} sender{'' if count == 1 else 's'}"


def measure(bench: Bench) -> list[Trial]:
    """Measure throughput beside peers; one sender and four at the reference rate-limited API; and kills."""
    if "weir" not in bench.programs or "redis-server" not in bench.programs:
        return []
    plan = bench.plan
    trials = [_unlimited(bench, name, number) for number, name in rounds((*DURABILITY, *PEERS), plan.pairs, plan.seed)]
    trials += [_shared(bench, count, number) for number, count in rounds(SENDERS, plan.shared_rounds, plan.seed)]
    trials.append(_killed(bench, max(SENDERS)))
    return trials


def _unlimited(bench: Bench, name: str, number: int) -> Trial:
    """Measure weir from a file of jobs to a file of results, or a peer as in the section `send`."""
    if name in queues.PEERS:
        return queues.trial(bench, name, number, UNLIMITED)
    trial = Trial(UNLIMITED, name, number)
    try:
        with scratch() as folder, _redis(bench, folder, DURABILITY[name]) as redis:
            before_s = redis.cpu_s()
            sending.echoed(bench, trial, bench.plan.shared_jobs, "--store", redis.url(QUEUE))
            info = redis.info()
            if not trial.error:
                trial.server["redis_us"] = (redis.cpu_s() - before_s) * 1e6 / bench.plan.shared_jobs
                trial.server["redis_mb"] = int(info["used_memory_peak"]) / 1e6
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
        trial.say("")
    return trial


def _redis(bench: Bench, folder: Path, durability: tuple[str, ...]) -> redis_server.Running:
    return redis_server.running(bench.programs["redis-server"], folder, *durability)


# --- At the reference rate-limited API


def _shared(bench: Bench, count: int, number: int) -> Trial:
    """Run several senders with more jobs than the limit allows; the server counts."""
    seconds = bench.plan.setting_s
    trial = Trial(SHARED, label(count), number, asked_s=seconds)
    try:
        with (
            served(bench, *sending.ratelimit_flags(REFERENCE)) as server,
            scratch() as folder,
            _redis(bench, folder, redis_server.EVERY_SECOND) as redis,
        ):
            source = jobs(folder, sending.jobs_for(REFERENCE, seconds + WARMUP_S + 5))

            def command(_: int, out: Path) -> list[str]:
                more = ("--store", redis.url(QUEUE), "--out", str(out))
                return sending.send_command(bench, server, REFERENCE, folder, str(source), *more)

            with Senders(folder, command) as senders:
                for _ in range(count):
                    senders.start()
                trial.command = senders.shown()
                redis_s = redis.cpu_s()
                counter = Count(server, seconds)
                counter.start()
                counter.join()
                cpu_s, redis_s = senders.cpu_s(), redis.cpu_s() - redis_s
                done = sum(said["done"] for said in senders.end())
            counted = stats(server)
            trial.requests = counter.accepted
            trial.server = {
                "accepted_per_s": counter.accepted / max(counter.took_s, 1e-9),
                **_violations(counted),
                "accepted": counted["accepted"],
                "lost": counted["accepted"] - done,
                "cpu_us": cpu_s * 1e6 / max(done, 1),
                "redis_us": redis_s * 1e6 / max(done, 1),
            }
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{accepted_per_s:.1f}/s accepted, {exceeded} x 429, {overtaken} x 400, {lost} lost")
    return trial


def _violations(counted: dict[str, dict[str, int]]) -> dict[str, int]:
    rejected = counted["rejected"]
    return {"exceeded": rejected["rate_limited"] + rejected["blocked"], "overtaken": rejected["invalid_nonce"]}


# --- Kills


def _killed(bench: Bench, count: int) -> Trial:
    """Kill the oldest sender repeatedly, at random times between two heartbeats, and start a new one."""
    kills, rng = bench.plan.kills, random.Random(bench.plan.seed)
    trial = Trial(KILLED, label(count), 0)
    try:
        with (
            served(bench, *sending.ratelimit_flags(REFERENCE)) as server,
            scratch() as folder,
            _redis(bench, folder, redis_server.EVERY_SECOND) as redis,
        ):
            source = jobs(folder, sending.jobs_for(REFERENCE, kills * KILL_S + TIMEOUT_S))

            def command(number: int, out: Path) -> list[str]:
                # Later senders have no jobs of their own.
                comes_from = str(source) if number < count else "-"
                more = ("--store", redis.url(QUEUE), "--out", str(out))
                return sending.send_command(bench, server, REFERENCE, folder, comes_from, *more)

            results = Results()
            with Senders(folder, command) as senders:
                for _ in range(count):
                    senders.start()
                trial.command = senders.shown()
                took_s: list[float] = []
                for kill in range(kills):
                    # Not after the last kill: a new sender could be terminated before it handles signals.
                    if kill:
                        senders.start()
                    _until_shared(redis, senders)
                    time.sleep(rng.uniform(0, LEASE_S / 3))
                    took_s += _kill(redis, senders, results)
                ended = senders.end()
                results.look(senders.every)
            counted = stats(server)
            delivered = {sent.job for sent in results.sent}
            trial.requests = counted["accepted"]
            trial.server = {
                "kills": kills,
                "keys": len(took_s),
                "took_s": {"min": min(took_s), "median": median(took_s), "max": max(took_s)},
                **_violations(counted),
                "accepted": counted["accepted"],
                "delivered": len(delivered),
                "twice": counted["accepted"] - len(delivered),
                "flagged": sum(sent.maybe_sent for sent in results.sent),
                "ended": len(ended),
            }
    except (ValueError, KeyError, OSError, StartError) as error:
        trial.error = f"not measured: {error}"
    trial.say("{kills} kills, {keys} keys: sent by again after {took_s}; {exceeded} x 429, {overtaken} x 400")
    return trial


def _kill(redis: Redis, senders: Senders, results: Results) -> list[float]:
    """Kill the oldest sender; return the seconds until another one used each of its keys."""
    victim = senders.alive[0]
    keys = [key for key, pid in _owners(redis).items() if pid == victim.process.pid]
    results.look(senders.every)
    known = len(results.sent)
    killed_s = senders.kill(victim)

    def first(key: str) -> float | None:
        others = (sent for sent in results.sent[known:] if sent.key == key and sent.by != victim.number)
        return min((sent.at_s for sent in others if sent.at_s > killed_s), default=None)

    def is_taken() -> bool:
        results.look(senders.every)
        return all(first(key) is not None for key in keys)

    _until(is_taken, senders, "to take over")
    return [at_s - killed_s for at_s in map(first, keys) if at_s is not None]


def _until_shared(redis: Redis, senders: Senders) -> None:
    """Wait until every sender has a key, and every key belongs to a running sender."""

    def is_shared() -> bool:
        owners = list(_owners(redis).values())
        alive = [sender.process.pid for sender in senders.alive]
        return len(owners) == sending.KEYS and set(owners) == set(alive)

    _until(is_shared, senders, "to share the keys")


def _until(is_so: Callable[[], bool], senders: Senders, what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        gone: list[Sender] = [sender for sender in senders.alive if sender.process.poll() is not None]
        if gone:
            raise ValueError(f"a sender ended before others began {what}: {gone[0].complaint()}")
        if time.monotonic() > deadline:
            raise ValueError(f"senders did not begin {what} within {TIMEOUT_S:.0f} s")
        time.sleep(LOOK_S)


def _owners(redis: Redis) -> dict[str, int]:
    """Return the process that has the lease of each key."""
    keys = [key for key in redis.ask(f"SMEMBERS weir:{QUEUE}:keys") if key]
    owners = redis.ask(*(f"HGET weir:{QUEUE}:key:{key} owner" for key in keys)) if keys else []
    return {key: int(owner.split("-")[0]) for key, owner in zip(keys, owners, strict=True) if owner}

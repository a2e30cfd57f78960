"""Sizes of a benchmark: durations, rounds and counts."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Plan:
    """Sizes of all sections; times in seconds."""

    pairs: int = 5  # rounds, each with every contender once
    slow_rounds: int = 2  # rounds with slow contenders
    closed_s: int = 3
    open_s: int = 10
    fast_s: int = 5
    freeze_s: int = 20
    delay_s: int = 10
    trace_s: int = 30
    trace_rounds: int = 3  # of clients that replay a trace
    memory_s: int = 10
    long_s: int = 600
    scenario_s: int = 10
    idle_s: int = 20  # ramp-up of idle users, and as long again
    serve_s: int = 2
    soak: int = 1_000_000  # requests
    gate_s: int = 6
    gate_rounds: int = 10  # of the closed loop, whose ratios are what is quoted
    client_s: int = 3
    loops: float = 1.0  # fraction of the load tests' loops
    hedge_s: int = 30
    storm_s: int = 15
    overload_s: int = 30
    send_s: int = 600  # at the reference rate-limited API
    setting_s: int = 60  # at each other limit
    sent_jobs: int = 500_000  # without a limit
    kept_jobs: int = 1_000_000  # in a store
    peer_jobs: int = 20_000
    late_s: int = 30
    shared_jobs: int = 200_000  # through Redis, without a limit
    shared_rounds: int = 3  # with one sender and with several
    kills: int = 10  # kills of one of several senders
    delivery_rounds: int = 3  # rounds with `weir send`
    recipe_rounds: int = 1  # rounds with its peer, too
    learn_s: int = 50  # at an undeclared limit
    limiter_rounds: int = 3
    limiter_requests: int = 600  # that are not rejected
    hosts_s: int = 15
    host_jobs: int = 1_500  # for each of several hosts
    harm_rounds: int = 3
    harm_s: int = 12  # calls without overload
    harm_min: float = 0  # minutes of another run, alone and with a burner; 0: none
    verdicts: int = 20  # studies and searches of each kind
    verdict_s: int = 1
    seed: int = 1
    quick: bool = False

    @classmethod
    def of(cls, *, quick: bool, pairs: int | None, seed: int, minutes: float = 0) -> Plan:
        """Make the full plan, or a quick one that only checks that everything works."""
        plan = cls(seed=seed, harm_min=minutes)
        if quick:
            plan = replace(
                plan,
                pairs=2,
                slow_rounds=1,
                closed_s=1,
                open_s=2,
                fast_s=1,
                freeze_s=10,
                delay_s=3,
                trace_s=5,
                trace_rounds=1,
                memory_s=3,
                long_s=60,
                scenario_s=3,
                idle_s=5,
                serve_s=1,
                soak=20_000,
                gate_s=2,
                gate_rounds=2,
                client_s=1,
                loops=0.1,
                hedge_s=9,
                storm_s=5,
                overload_s=8,
                send_s=20,
                setting_s=8,
                sent_jobs=30_000,
                kept_jobs=100_000,
                peer_jobs=3_000,
                late_s=6,
                shared_jobs=20_000,
                shared_rounds=1,
                kills=2,
                delivery_rounds=1,
                learn_s=20,
                host_jobs=600,
                limiter_rounds=1,
                limiter_requests=100,
                hosts_s=8,
                harm_rounds=1,
                harm_s=5,
                verdicts=2,
                quick=True,
            )
        if not pairs:
            return plan
        fewer = {name: min(pairs, getattr(plan, name)) for name in ("slow_rounds", "harm_rounds", "trace_rounds")}
        return replace(plan, pairs=pairs, **fewer)

"""A client of a model server in one process of asyncio, written as the benchmark of vLLM is.

    python with_asyncio.py --url URL --rate R --seconds S --tokens N --seed N --out FILE

Each request is a task, which looks at the clock when it is its turn to read an event; requests begin at random times
(Poisson) at an average rate. The file has a line of JSON for each response: times in seconds from its send to the
first token, per further token, and to the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from pathlib import Path

import aiohttp

MODEL = "weir-llm"


async def stream(session: aiohttp.ClientSession, url: str, tokens: int) -> dict[str, float]:
    """Make a request; return its times."""
    body = {
        "model": MODEL,
        "stream": True,
        "max_tokens": tokens,
        "ignore_eos": True,
        "messages": [{"role": "user", "content": "hello world this is a prompt"}],
    }
    sent = time.perf_counter()
    events: list[float] = []
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            text = line.strip().removeprefix(b"data: ")
            if not text or text == b"[DONE]":
                continue
            if json.loads(text)["choices"][0]["delta"].get("content"):
                events.append(time.perf_counter())
    ended = time.perf_counter()
    further = len(events) - 1
    return {"ttft": events[0] - sent, "tpot": (events[-1] - events[0]) / further, "end_to_end": ended - sent}


async def run(args: argparse.Namespace) -> list[dict[str, float]]:
    """Begin requests at their times; return the times of all."""
    chance = random.Random(args.seed)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        began = time.perf_counter()
        due, tasks = 0.0, []
        while (due := due + chance.expovariate(args.rate)) < args.seconds:
            await asyncio.sleep(began + due - time.perf_counter())
            tasks.append(asyncio.create_task(stream(session, args.url, args.tokens)))
        return list(await asyncio.gather(*tasks))


def main() -> None:
    """Run the load, and write its times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    lines = [json.dumps(times) for times in asyncio.run(run(args))]
    args.out.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()

// Events of the server, by fetch: an EventSource cannot send the token as a header.

const RETRY_MS = [250, 500, 1000, 2000, 4000];

/// Token of the address. It stays in the address, so that the page can be reloaded; the server never sees it there.
const authorization = () => ({ Authorization: `Bearer ${decodeURIComponent(location.hash.slice(1).split("/")[0])}` });

/// Reads events until the run is over, or for ever if others may follow; `on` has a function for each. A connection that is lost is made again, and goes on
/// where the last one ended.
async function follow(since, on) {
  let failed = 0, goesOn = false;
  for (;;) {
    try {
      const response = await fetch(`/api/events${since()}`, { headers: authorization() });
      if (response.status === 401) { on.rejected(await reason(response)); return; }
      if (!response.ok) throw new Error(await reason(response));
      failed = 0;
      on.connected();
      for await (const [name, data] of eventsOf(response.body)) {
        on[name]?.(data);
        goesOn ||= name === "run";
        if (name === "end" && !goesOn) return;
      }
    } catch (error) {
      console.debug(error);
    }
    on.lost();
    await new Promise((done) => setTimeout(done, RETRY_MS[Math.min(failed++, RETRY_MS.length - 1)]));
  }
}

async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

async function reason(response) {
  try { return (await response.json()).error; } catch { return `status ${response.status}`; }
}

/// Changes the load; returns the text of an error, or null.
async function change(what) {
  try {
    const headers = { ...authorization(), "Content-Type": "application/json" };
    const response = await fetch("/api/change", { method: "POST", headers, body: JSON.stringify(what) });
    return response.ok ? null : await reason(response);
  } catch {
    return "weir is not reached";
  }
}

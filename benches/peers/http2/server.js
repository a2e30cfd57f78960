// HTTP/2 without TLS by Node's http2: /bytes/N has a body of N bytes, /echo returns the request's, /stats the counts.
"use strict";
const http2 = require("node:http2");

const counts = { requests: 0, in: 0, out: 0 };

const server = http2.createServer({ maxSessionMemory: 1000 }, (request, response) => {
  if (request.url === "/stats") {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(counts));
    return;
  }
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    let body = Buffer.concat(pieces);
    counts.in += body.length;
    if (request.url.startsWith("/bytes/")) body = Buffer.alloc(Number(request.url.slice("/bytes/".length)));
    response.setHeader("content-length", String(body.length));
    response.end(body);
    counts.out += body.length;
    counts.requests += 1;
  });
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ listening: `http://127.0.0.1:${server.address().port}` }));
});

// Echo server of the package ws, which counts: node server.js FOLDER_OF_NODE_MODULES
const http = require("http");
const { WebSocketServer } = require(process.argv[2] + "/node_modules/ws");

const counts = { connections: 0, messages: 0, bytes: 0, sent: 0 };
const server = http.createServer((request, response) => response.end(JSON.stringify(counts)));
const sockets = new WebSocketServer({
    server,
    maxPayload: 64 << 20,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: (offered) => [...offered][0],
});
sockets.on("connection", (socket) => {
    counts.connections += 1;
    socket.on("message", (data, isBinary) => {
        counts.messages += 1;
        counts.bytes += data.length;
        socket.send(data, { binary: isBinary }, () => { counts.sent += 1; });
    });
});
server.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ listening: `http://127.0.0.1:${server.address().port}` }));
});

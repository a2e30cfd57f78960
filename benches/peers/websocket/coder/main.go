// Echo server of coder/websocket, which counts.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"
)

var connections, messages, bytes, sent atomic.Int64

func main() {
	http.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]int64{
			"connections": connections.Load(), "messages": messages.Load(), "bytes": bytes.Load(), "sent": sent.Load(),
		})
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		options := &websocket.AcceptOptions{
			CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1,
		}
		socket, err := websocket.Accept(w, r, options)
		if err != nil {
			return
		}
		defer socket.CloseNow()
		socket.SetReadLimit(64 << 20)
		connections.Add(1)
		for {
			kind, data, err := socket.Read(context.Background())
			if err != nil {
				return
			}
			messages.Add(1)
			bytes.Add(int64(len(data)))
			if socket.Write(context.Background(), kind, data) != nil {
				return
			}
			sent.Add(1)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("{\"listening\":\"http://%s\"}\n", listener.Addr())
	panic(http.Serve(listener, nil))
}

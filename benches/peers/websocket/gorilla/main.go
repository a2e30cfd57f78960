// Echo server of gorilla/websocket, which counts.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

var connections, messages, bytes, sent atomic.Int64

func main() {
	upgrader := websocket.Upgrader{
		EnableCompression: true,
		CheckOrigin:       func(*http.Request) bool { return true },
	}
	http.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]int64{
			"connections": connections.Load(), "messages": messages.Load(), "bytes": bytes.Load(), "sent": sent.Load(),
		})
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		socket, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer socket.Close()
		connections.Add(1)
		for {
			kind, data, err := socket.ReadMessage()
			if err != nil {
				return
			}
			messages.Add(1)
			bytes.Add(int64(len(data)))
			if socket.WriteMessage(kind, data) != nil {
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

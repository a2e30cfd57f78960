// Echo server of coder/websocket; `../counts.go` stands beside it.
package main

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
)

func main() {
	serve(func(w http.ResponseWriter, r *http.Request) {
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
}

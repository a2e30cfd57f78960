// Echo server of gorilla/websocket; `../counts.go` stands beside it.
package main

import (
	"net/http"

	"github.com/gorilla/websocket"
)

func main() {
	upgrader := websocket.Upgrader{
		EnableCompression: true,
		CheckOrigin:       func(*http.Request) bool { return true },
	}
	serve(func(w http.ResponseWriter, r *http.Request) {
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
}

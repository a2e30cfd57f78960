// Counts of an echo server, and the server around it.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
)

var connections, messages, bytes, sent atomic.Int64

// Prints the address of a free port, and serves sockets and their counts there.
func serve(echo http.HandlerFunc) {
	http.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]int64{
			"connections": connections.Load(), "messages": messages.Load(), "bytes": bytes.Load(), "sent": sent.Load(),
		})
	})
	http.HandleFunc("/", echo)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("{\"listening\":\"http://%s\"}\n", listener.Addr())
	panic(http.Serve(listener, nil))
}

// HTTP/2 without TLS by Go's net/http: /bytes/N has a body of N bytes, /echo returns the request's, /stats the counts.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

var requests, bytesIn, bytesOut atomic.Int64

func handle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stats" {
		json.NewEncoder(w).Encode(map[string]int64{
			"requests": requests.Load(), "in": bytesIn.Load(), "out": bytesOut.Load(),
		})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	bytesIn.Add(int64(len(body)))
	if size, ok := strings.CutPrefix(r.URL.Path, "/bytes/"); ok {
		length, _ := strconv.Atoi(size)
		body = make([]byte, length)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	written, err := w.Write(body)
	if err == nil {
		bytesOut.Add(int64(written))
		requests.Add(1)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("{\"listening\":\"http://%s\"}\n", listener.Addr())
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(handle), Protocols: protocols}
	panic(server.Serve(listener))
}

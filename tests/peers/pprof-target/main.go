// SPDX-License-Identifier: Apache-2.0

// pprof-target serves net/http/pprof on a port of its own, which it prints, and works on demand:
// /work?objects=N&contentions=N allocates that many objects of 1 KiB, and waits for a mutex that
// often. Every allocation and wait is in its profiles.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func allocateObjects(count int) {
	for i := 0; i < count; i++ {
		kept = append(kept, make([]byte, 1024))
	}
}

//go:noinline
func waitForMutex(count int) {
	for i := 0; i < count; i++ {
		var mutex sync.Mutex
		mutex.Lock()
		done := make(chan struct{})
		go func() {
			mutex.Lock()
			mutex.Unlock()
			close(done)
		}()
		time.Sleep(2 * time.Millisecond)
		mutex.Unlock()
		<-done
	}
}

//go:noinline
func burnCPU() {
	for sum := uint64(1); ; sum = sum*31 + 7 {
		if sum == 0 {
			fmt.Fprintln(os.Stderr, "never")
		}
		if sum%(1<<24) == 3 {
			runtime.Gosched()
		}
	}
}

func work(response http.ResponseWriter, request *http.Request) {
	objects, _ := strconv.Atoi(request.FormValue("objects"))
	contentions, _ := strconv.Atoi(request.FormValue("contentions"))
	allocateObjects(objects)
	waitForMutex(contentions)
	// The profile of allocations is that of the last finished cycle.
	runtime.GC()
	runtime.GC()
	fmt.Fprintln(response, "done")
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	http.HandleFunc("/work", work)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "--burn" {
		go burnCPU()
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
}

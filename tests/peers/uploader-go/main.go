// SPDX-License-Identifier: Apache-2.0

// Works for a while under Pyroscope's Go SDK and uploads what it saw.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/grafana/pyroscope-go"
)

var sum int

func work(until time.Time) {
	var kept [][]byte
	for time.Now().Before(until) {
		for i := 0; i < 1000000; i++ {
			sum += i
		}
		if kept = append(kept, make([]byte, 1<<17)); len(kept) > 64 {
			kept = nil
		}
	}
}

func main() {
	endpoint := flag.String("endpoint", "", "URL of the server")
	service := flag.String("service", "peer", "application's name")
	seconds := flag.Int("seconds", 4, "how long")
	flag.Parse()
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: *service,
		ServerAddress:   *endpoint,
		UploadRate:      2 * time.Second,
		Tags:            map[string]string{"region": "eu", "host.name": "h"},
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocSpace, pyroscope.ProfileInuseSpace,
			pyroscope.ProfileGoroutines,
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	work(time.Now().Add(time.Duration(*seconds) * time.Second))
	if err := profiler.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

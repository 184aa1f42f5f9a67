// SPDX-License-Identifier: Apache-2.0

// Merges profiles requests with the Go collector's own library, as its exporters' batcher does, for
// the benchmark: each FILE is a request. Prints processor time, garbage collection included, in ns
// per byte that came in, the best of several runs, and the peak of resident memory per such byte.
package main

import (
	"encoding/json"
	"log"
	"os"
	"syscall"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

const (
	runs     = 3
	enoughNs = 5e9 // then one run says it
)

type figures struct {
	CheckNs float64 `json:"check_ns"`
	MergeNs float64 `json:"merge_ns"`
	Memory  float64 `json:"memory"`
}

func usage() (cpuNs float64, peakBytes float64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano()), float64(usage.Maxrss) * 1024
}

func decode(bodies [][]byte) []pprofile.Profiles {
	var decoded []pprofile.Profiles
	for _, body := range bodies {
		request := pprofileotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			log.Fatal(err)
		}
		decoded = append(decoded, request.Profiles())
	}
	return decoded
}

func merge(decoded []pprofile.Profiles) {
	for _, profiles := range decoded[1:] {
		if err := profiles.MergeTo(decoded[0]); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := pprofileotlp.NewExportRequestFromProfiles(decoded[0]).MarshalProto(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	var bodies [][]byte
	total := 0.0
	for _, path := range os.Args[1:] {
		body, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		bodies = append(bodies, body)
		total += float64(len(body))
	}
	if len(bodies) == 0 {
		log.Fatal("usage: pprofile FILE…")
	}
	best := figures{CheckNs: 1e18, MergeNs: 1e18}
	for run, spent := 0, 0.0; run < runs && spent < enoughNs; run++ {
		begin, _ := usage()
		decoded := decode(bodies)
		middle, _ := usage()
		merge(decoded)
		end, peak := usage()
		spent += end - begin
		best.CheckNs = min(best.CheckNs, (middle-begin)/total)
		best.MergeNs = min(best.MergeNs, (end-middle)/total)
		if best.Memory == 0 {
			best.Memory = peak / total
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(best); err != nil {
		log.Fatal(err)
	}
}

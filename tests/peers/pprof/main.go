// SPDX-License-Identifier: Apache-2.0
// The pprof oracle: what Go's own reader makes of profile files, and real files for the corpus.
//
//	pprof describe FILE...   prints one line of JSON per file
//	pprof emit DIRECTORY     writes cpu.pb.gz, heap.pb.gz and goroutine.pb.gz of this process
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"time"

	"github.com/google/pprof/profile"
)

// description is what two readers must agree on; samples are texts, sorted.
type description struct {
	Error       string   `json:"error,omitempty"`
	SampleTypes []string `json:"sample_types"`
	PeriodType  string   `json:"period_type"`
	Period      int64    `json:"period"`
	Time        int64    `json:"time"`
	Duration    int64    `json:"duration"`
	Samples     []string `json:"samples"`
}

func frames(location *profile.Location) string {
	text := ""
	if location.Mapping != nil {
		text = fmt.Sprintf("%s@%s", location.Mapping.File, location.Mapping.BuildID)
	}
	text += fmt.Sprintf("+%x", location.Address)
	for _, line := range location.Line {
		name, file := "", ""
		if line.Function != nil {
			name, file = line.Function.Name, line.Function.Filename
		}
		text += fmt.Sprintf("/%s:%s:%d:%d", name, file, line.Line, line.Column)
	}
	return text
}

func labels(sample *profile.Sample) string {
	var texts []string
	for key, values := range sample.Label {
		for _, value := range values {
			texts = append(texts, key+"="+value)
		}
	}
	for key, values := range sample.NumLabel {
		for i, value := range values {
			unit := ""
			if units := sample.NumUnit[key]; len(units) > i {
				unit = units[i]
			}
			texts = append(texts, fmt.Sprintf("%s=%d%s", key, value, unit))
		}
	}
	sort.Strings(texts)
	text := ""
	for _, one := range texts {
		text += " " + one
	}
	return text
}

func describe(path string) description {
	content, err := os.ReadFile(path)
	if err != nil {
		return description{Error: err.Error()}
	}
	parsed, err := profile.Parse(bytes.NewReader(content))
	if err != nil {
		return description{Error: err.Error()}
	}
	result := description{Period: parsed.Period, Time: parsed.TimeNanos, Duration: parsed.DurationNanos,
		SampleTypes: []string{}, Samples: []string{}}
	for _, one := range parsed.SampleType {
		result.SampleTypes = append(result.SampleTypes, one.Type+":"+one.Unit)
	}
	if parsed.PeriodType != nil {
		result.PeriodType = parsed.PeriodType.Type + ":" + parsed.PeriodType.Unit
	}
	for _, sample := range parsed.Sample {
		text := ""
		for _, location := range sample.Location {
			text += frames(location) + ";"
		}
		result.Samples = append(result.Samples, fmt.Sprintf("%s%v%s", text, sample.Value, labels(sample)))
	}
	sort.Strings(result.Samples)
	return result
}

var sink []byte

//go:noinline
func busy(until time.Time) {
	for n := 0; time.Now().Before(until); n++ {
		sink = append(sink[:0], make([]byte, 1+n%64)...)
	}
}

func emit(directory string) error {
	runtime.MemProfileRate = 512
	file, err := os.Create(filepath.Join(directory, "cpu.pb.gz"))
	if err != nil {
		return err
	}
	if err = pprof.StartCPUProfile(file); err != nil {
		return err
	}
	pprof.Do(context.Background(), pprof.Labels("span_id", "00f067aa0ba902b7", "http.route", "/checkout"),
		func(context.Context) { busy(time.Now().Add(200 * time.Millisecond)) })
	pprof.StopCPUProfile()
	file.Close()
	for _, name := range []string{"heap", "goroutine"} {
		file, err = os.Create(filepath.Join(directory, name+".pb.gz"))
		if err != nil {
			return err
		}
		if err = pprof.Lookup(name).WriteTo(file, 0); err != nil {
			return err
		}
		file.Close()
	}
	return nil
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "emit" {
		if err := emit(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 3 || os.Args[1] != "describe" {
		fmt.Fprintln(os.Stderr, "usage: pprof describe FILE... | pprof emit DIRECTORY")
		os.Exit(2)
	}
	for _, path := range os.Args[2:] {
		line, _ := json.Marshal(describe(path))
		fmt.Println(string(line))
	}
}

// SPDX-License-Identifier: Apache-2.0
// The pprof oracle: what Go's own reader makes of profile files, and real files for the corpus.
//
//	pprof describe FILE      prints it in words, samples sorted, or why it cannot be read
//	pprof emit DIRECTORY     writes cpu.pb.gz, heap.pb.gz and goroutine.pb.gz of this process
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"time"

	"github.com/google/pprof/profile"
)

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

func describe(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := profile.Parse(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, one := range parsed.SampleType {
		fmt.Printf("%s:%s ", one.Type, one.Unit)
	}
	period := &profile.ValueType{}
	if parsed.PeriodType != nil {
		period = parsed.PeriodType
	}
	fmt.Printf("period %s:%s %d time %d duration %d", period.Type, period.Unit, parsed.Period, parsed.TimeNanos,
		parsed.DurationNanos)
	var lines []string
	for _, sample := range parsed.Sample {
		text := ""
		for _, location := range sample.Location {
			text += frames(location) + ";"
		}
		lines = append(lines, fmt.Sprintf("\n%s%v%s", text, sample.Value, labels(sample)))
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Print(line)
	}
	return nil
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
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "emit":
		err = emit(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "describe":
		err = describe(os.Args[2])
	default:
		err = fmt.Errorf("usage: pprof describe FILE | pprof emit DIRECTORY")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Sends known spans by Jaeger's own client for Go and prints, as JSON, what it sent.
// Usage: jaeger-go udp|http HOST:PORT SERVICE; over UDP it speaks Thrift's compact protocol.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	opentracing "github.com/opentracing/opentracing-go"
	openlog "github.com/opentracing/opentracing-go/log"
	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"
)

const (
	startMs = 1700000000123
	text    = "ä€𝄞"
)

type event struct {
	TimeMs int64          `json:"time_ms"`
	Fields map[string]any `json:"fields"`
}

type span struct {
	TraceID  string         `json:"trace_id"`
	SpanID   string         `json:"span_id"`
	ParentID *string        `json:"parent_id"`
	Name     string         `json:"name"`
	StartMs  int64          `json:"start_ms"`
	EndMs    int64          `json:"end_ms"`
	Tags     map[string]any `json:"tags"`
	Logs     []event        `json:"logs"`
}

type emitter struct {
	tracer opentracing.Tracer
	sent   []span
}

func field(key string, value any) openlog.Field {
	switch typed := value.(type) {
	case int64:
		return openlog.Int64(key, typed)
	case bool:
		return openlog.Bool(key, typed)
	default:
		return openlog.String(key, fmt.Sprint(typed))
	}
}

func (e *emitter) record(one span, options ...opentracing.StartSpanOption) opentracing.SpanContext {
	options = append(options, opentracing.StartTime(time.UnixMilli(one.StartMs)))
	open := e.tracer.StartSpan(one.Name, options...)
	for key, value := range one.Tags {
		open.SetTag(key, value)
		if bytes, isBytes := value.([]byte); isBytes {
			one.Tags[key] = map[string]string{"hex": fmt.Sprintf("%x", bytes)}
		}
	}
	finish := opentracing.FinishOptions{FinishTime: time.UnixMilli(one.EndMs)}
	for _, line := range one.Logs {
		record := opentracing.LogRecord{Timestamp: time.UnixMilli(line.TimeMs)}
		for key, value := range line.Fields {
			record.Fields = append(record.Fields, field(key, value))
		}
		finish.LogRecords = append(finish.LogRecords, record)
	}
	open.FinishWithOptions(finish)
	context := open.Context().(jaeger.SpanContext)
	one.TraceID = context.TraceID().String()
	one.SpanID = context.SpanID().String()
	if context.ParentID() != 0 {
		parent := context.ParentID().String()
		one.ParentID = &parent
	}
	e.sent = append(e.sent, one)
	return context
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: jaeger-go udp|http HOST:PORT SERVICE")
	}
	var sender jaeger.Transport
	isHTTP := os.Args[1] == "http"
	if isHTTP {
		sender = transport.NewHTTPTransport("http://" + os.Args[2] + "/api/traces")
	} else {
		var err error
		sender, err = jaeger.NewUDPTransport(os.Args[2], 0)
		must(err)
	}
	process := map[string]any{"deployment": "eu", "replica": int64(3), "canary": true}
	// UDP with trace ids of 64 bits, HTTP with those of 128.
	options := []jaeger.TracerOption{jaeger.TracerOptions.Gen128Bit(isHTTP)}
	for key, value := range process {
		options = append(options, jaeger.TracerOptions.Tag(key, value))
	}
	reporter := jaeger.NewRemoteReporter(sender, jaeger.ReporterOptions.Logger(jaeger.StdLogger))
	tracer, closer := jaeger.NewTracer(os.Args[3], jaeger.NewConstSampler(true), reporter, options...)
	e := emitter{tracer: tracer}
	root := e.record(span{
		Name: "GET /cart", StartMs: startMs, EndMs: startMs + 25,
		Tags: map[string]any{
			"span.kind": "server", "http.status_code": int64(200), "ratio": 0.5, "text": text,
			"flag": false, "raw": []byte{0, 255, 10},
		},
		Logs: []event{
			{startMs + 1, map[string]any{"event": "looked up", "rows": int64(2), "hit": true}},
			{startMs + 2, map[string]any{"message": text}},
		},
	})
	e.record(span{
		Name: "price", StartMs: startMs + 3, EndMs: startMs + 8,
		Tags: map[string]any{"span.kind": "client", "error": true, "peer.service": "prices"},
	}, opentracing.ChildOf(root))
	e.record(span{Name: "mail", StartMs: startMs + 9, EndMs: startMs + 9}, opentracing.FollowsFrom(root))
	must(closer.Close())
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"spans": e.sent, "process": process}))
}

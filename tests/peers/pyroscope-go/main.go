// SPDX-License-Identifier: Apache-2.0

// Works while Pyroscope's SDK profiles it and OpenTelemetry's traces it; prints, as JSON, which spans
// it had. The options are those of every Pyroscope peer: see tests/peers/README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"time"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const uploadEvery = 2 * time.Second

type span struct {
	Name    string `json:"name"`
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
}

var sink int

//go:noinline
func render(until time.Time) {
	for time.Now().Before(until) {
		for i := 0; i < 1_000_000; i++ {
			sink += i * i
		}
	}
}

//go:noinline
func parse(until time.Time) {
	for time.Now().Before(until) {
		for i := 0; i < 1_000_000; i++ {
			sink ^= i * i
		}
	}
}

func spanOf(name string, one trace.Span) span {
	ids := one.SpanContext()
	return span{name, ids.TraceID().String(), ids.SpanID().String()}
}

// A slow request, and fast ones before and after it.
func serve(tracer trace.Tracer) []span {
	requests := []struct {
		name string
		work func(time.Time)
		time time.Duration
	}{
		{"search", parse, 400 * time.Millisecond},
		{"checkout", render, 1500 * time.Millisecond},
		{"list", parse, 400 * time.Millisecond},
	}
	var spans []span
	for _, request := range requests {
		_, one := tracer.Start(context.Background(), request.name,
			trace.WithAttributes(attribute.String("http.route", "/"+request.name)))
		request.work(time.Now().Add(request.time))
		one.End()
		spans = append(spans, spanOf(request.name, one))
	}
	return spans
}

// A request that does some of its work itself and most of it in a child.
func serveNested(tracer trace.Tracer) []span {
	ctx, root := tracer.Start(context.Background(), "checkout",
		trace.WithSpanKind(trace.SpanKindServer))
	parse(time.Now().Add(500 * time.Millisecond))
	_, child := tracer.Start(ctx, "invoice")
	render(time.Now().Add(1500 * time.Millisecond))
	child.End()
	root.End()
	return []span{spanOf("checkout", root), spanOf("invoice", child)}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	spans := flag.String("spans", "", "base URL for OTLP")
	profiles := flag.String("profiles", "", "URL for profiles")
	service := flag.String("service", "", "service.name")
	work := flag.String("work", "requests", "requests or nested")
	flag.Parse()
	ctx := context.Background()
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: *service,
		ServerAddress:   *profiles,
		UploadRate:      uploadEvery,
		ProfileTypes:    []pyroscope.ProfileType{pyroscope.ProfileCPU},
	})
	must(err)
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(*spans+"/v1/traces"))
	must(err)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(500*time.Millisecond)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", *service))))
	var had []span
	if *work == "nested" {
		all := otelpyroscope.WithSpanIDLabelScope(otelpyroscope.ScopeAllSpans)
		had = serveNested(otelpyroscope.NewTracerProvider(provider, all).Tracer("peer"))
	} else {
		had = serve(otelpyroscope.NewTracerProvider(provider).Tracer("peer"))
	}
	must(profiler.Stop())
	must(provider.Shutdown(ctx))
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"sdk": "go", "spans": had}))
}

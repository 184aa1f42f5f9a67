// SPDX-License-Identifier: Apache-2.0

// Emits known telemetry through the OpenTelemetry SDK for Go and prints, as JSON, what it sent.
// The flags are those of every peer: see tests/peers/README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

type options struct {
	protocol, endpoint, compression, service string
	tls                                      bool
	spans, points, logs                      int
}

type span struct {
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
	Name    string `json:"name"`
}

type report struct {
	SDK     string         `json:"sdk"`
	Spans   []span         `json:"spans"`
	Metrics map[string]int `json:"metrics"`
	Logs    []string       `json:"logs"`
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func spanExporter(ctx context.Context, o options) (trace.SpanExporter, error) {
	if o.protocol == "grpc" {
		opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(o.endpoint)}
		if !o.tls {
			opts = append(opts, otlptracegrpc.WithInsecure())
		}
		if o.compression == "gzip" {
			opts = append(opts, otlptracegrpc.WithCompressor("gzip"))
		}
		return otlptracegrpc.New(ctx, opts...)
	}
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpoint(o.endpoint)}
	if !o.tls {
		opts = append(opts, otlptracehttp.WithInsecure())
	}
	if o.compression == "gzip" {
		opts = append(opts, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	}
	return otlptracehttp.New(ctx, opts...)
}

func metricExporter(ctx context.Context, o options) (metric.Exporter, error) {
	if o.protocol == "grpc" {
		opts := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(o.endpoint)}
		if !o.tls {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		if o.compression == "gzip" {
			opts = append(opts, otlpmetricgrpc.WithCompressor("gzip"))
		}
		return otlpmetricgrpc.New(ctx, opts...)
	}
	opts := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpoint(o.endpoint)}
	if !o.tls {
		opts = append(opts, otlpmetrichttp.WithInsecure())
	}
	if o.compression == "gzip" {
		opts = append(opts, otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
	}
	return otlpmetrichttp.New(ctx, opts...)
}

func logExporter(ctx context.Context, o options) (sdklog.Exporter, error) {
	if o.protocol == "grpc" {
		opts := []otlploggrpc.Option{otlploggrpc.WithEndpoint(o.endpoint)}
		if !o.tls {
			opts = append(opts, otlploggrpc.WithInsecure())
		}
		if o.compression == "gzip" {
			opts = append(opts, otlploggrpc.WithCompressor("gzip"))
		}
		return otlploggrpc.New(ctx, opts...)
	}
	opts := []otlploghttp.Option{otlploghttp.WithEndpoint(o.endpoint)}
	if !o.tls {
		opts = append(opts, otlploghttp.WithInsecure())
	}
	if o.compression == "gzip" {
		opts = append(opts, otlploghttp.WithCompression(otlploghttp.GzipCompression))
	}
	return otlploghttp.New(ctx, opts...)
}

func emitSpans(ctx context.Context, o options, res *resource.Resource) []span {
	exporter, err := spanExporter(ctx, o)
	check(err)
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(res))
	tracer := provider.Tracer("peer")
	sent := []span{}
	for i := range o.spans {
		name := fmt.Sprintf("go-span-%d", i)
		_, s := tracer.Start(ctx, name)
		s.SetAttributes(attribute.Int("peer.index", i), attribute.String("peer.text", "ä€𝄞"),
			attribute.Float64("peer.ratio", 0.5), attribute.Bool("peer.flag", true))
		s.AddEvent("peer-event")
		s.End()
		id := s.SpanContext()
		sent = append(sent, span{id.TraceID().String(), id.SpanID().String(), name})
	}
	check(provider.Shutdown(ctx))
	return sent
}

func emitMetrics(ctx context.Context, o options, res *resource.Resource) map[string]int {
	sent := map[string]int{}
	exporter, err := metricExporter(ctx, o)
	check(err)
	reader := metric.NewPeriodicReader(exporter, metric.WithInterval(time.Hour))
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res))
	meter := provider.Meter("peer")
	for i := range o.points {
		name := fmt.Sprintf("go.metric.%d", i)
		counter, err := meter.Int64Counter(name)
		check(err)
		counter.Add(ctx, int64(i+1))
		sent[name] = i + 1
	}
	check(provider.Shutdown(ctx))
	return sent
}

func emitLogs(ctx context.Context, o options, res *resource.Resource) []string {
	exporter, err := logExporter(ctx, o)
	check(err)
	provider := sdklog.NewLoggerProvider(
		sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(res))
	logger := provider.Logger("peer")
	sent := []string{}
	for i := range o.logs {
		var record otellog.Record
		body := fmt.Sprintf("go-log-%d ä€𝄞", i)
		record.SetBody(attribute.StringValue(body))
		record.SetSeverity(otellog.SeverityInfo)
		record.SetTimestamp(time.Now())
		logger.Emit(ctx, record)
		sent = append(sent, body)
	}
	check(provider.Shutdown(ctx))
	return sent
}

func main() {
	var o options
	flag.StringVar(&o.protocol, "protocol", "http", "grpc or http")
	flag.StringVar(&o.endpoint, "endpoint", "127.0.0.1:4318", "host:port")
	flag.StringVar(&o.compression, "compression", "none", "none or gzip")
	flag.StringVar(&o.service, "service", "peer-go", "service.name")
	flag.IntVar(&o.spans, "spans", 10, "how many spans")
	flag.IntVar(&o.points, "points", 3, "how many metrics")
	flag.IntVar(&o.logs, "logs", 5, "how many log records")
	flag.BoolVar(&o.tls, "tls", false, "over TLS, with the certificates that the SDK's environment variables name")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res := resource.NewSchemaless(attribute.String("service.name", o.service))
	sent := report{SDK: "go", Spans: emitSpans(ctx, o, res), Metrics: emitMetrics(ctx, o, res), Logs: emitLogs(ctx, o, res)}
	check(json.NewEncoder(os.Stdout).Encode(sent))
}

// SPDX-License-Identifier: Apache-2.0

package peer;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.logs.Logger;
import io.opentelemetry.api.logs.Severity;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporter;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.exporter.otlp.logs.OtlpGrpcLogRecordExporter;
import io.opentelemetry.exporter.otlp.metrics.OtlpGrpcMetricExporter;
import io.opentelemetry.exporter.otlp.trace.OtlpGrpcSpanExporter;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor;
import io.opentelemetry.sdk.logs.export.LogRecordExporter;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.export.MetricExporter;
import io.opentelemetry.sdk.metrics.export.PeriodicMetricReader;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.nio.charset.StandardCharsets;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Emits known telemetry through the OpenTelemetry SDK for Java and prints, as JSON, what it sent.
 * The options are those of every peer: see tests/peers/README.md.
 */
public final class Emit {
    private static final String TEXT = "\u00e4\u20ac\ud834\udd1e";

    private final Map<String, String> options;
    private final boolean grpc;
    private final String base;
    private final String compression;
    private final Resource resource;

    private Emit(Map<String, String> options) {
        this.options = options;
        this.grpc = options.getOrDefault("protocol", "http").equals("grpc");
        this.base = "http://" + options.getOrDefault("endpoint", "127.0.0.1:4318");
        this.compression = options.getOrDefault("compression", "none");
        this.resource = Resource.create(Attributes.of(
                AttributeKey.stringKey("service.name"), options.getOrDefault("service", "peer-java")));
    }

    private int count(String name, int otherwise) {
        return Integer.parseInt(options.getOrDefault(name, Integer.toString(otherwise)));
    }

    private SpanExporter spanExporter() {
        return grpc
                ? OtlpGrpcSpanExporter.builder().setEndpoint(base).setCompression(compression).build()
                : OtlpHttpSpanExporter.builder().setEndpoint(base + "/v1/traces")
                        .setCompression(compression).build();
    }

    private MetricExporter metricExporter() {
        return grpc
                ? OtlpGrpcMetricExporter.builder().setEndpoint(base).setCompression(compression).build()
                : OtlpHttpMetricExporter.builder().setEndpoint(base + "/v1/metrics")
                        .setCompression(compression).build();
    }

    private LogRecordExporter logExporter() {
        return grpc
                ? OtlpGrpcLogRecordExporter.builder().setEndpoint(base).setCompression(compression).build()
                : OtlpHttpLogRecordExporter.builder().setEndpoint(base + "/v1/logs")
                        .setCompression(compression).build();
    }

    private static void finish(CompletableResultCode result) {
        if (!result.join(30, TimeUnit.SECONDS).isSuccess()) {
            throw new IllegalStateException("the exporter did not deliver everything");
        }
    }

    private List<String> emitSpans() {
        SdkTracerProvider provider = SdkTracerProvider.builder().setResource(resource)
                .addSpanProcessor(BatchSpanProcessor.builder(spanExporter()).build()).build();
        Tracer tracer = provider.get("peer");
        List<String> sent = new ArrayList<>();
        for (int i = 0; i < count("spans", 10); i++) {
            String name = "java-span-" + i;
            Span span = tracer.spanBuilder(name).startSpan();
            span.setAttribute("peer.index", i).setAttribute("peer.text", TEXT)
                    .setAttribute("peer.ratio", 0.5).setAttribute("peer.flag", true);
            span.addEvent("peer-event");
            span.end();
            sent.add("{\"trace_id\":\"" + span.getSpanContext().getTraceId() + "\",\"span_id\":\""
                    + span.getSpanContext().getSpanId() + "\",\"name\":\"" + name + "\"}");
        }
        finish(provider.forceFlush());
        finish(provider.shutdown());
        return sent;
    }

    private List<String> emitMetrics() {
        SdkMeterProvider provider = SdkMeterProvider.builder().setResource(resource)
                .registerMetricReader(PeriodicMetricReader.builder(metricExporter())
                        .setInterval(Duration.ofHours(1)).build()).build();
        Meter meter = provider.get("peer");
        List<String> sent = new ArrayList<>();
        for (int i = 0; i < count("points", 3); i++) {
            meter.counterBuilder("java.metric." + i).build().add(i + 1);
            sent.add("\"java.metric." + i + "\":" + (i + 1));
        }
        finish(provider.shutdown());
        return sent;
    }

    private List<String> emitLogs() {
        SdkLoggerProvider provider = SdkLoggerProvider.builder().setResource(resource)
                .addLogRecordProcessor(BatchLogRecordProcessor.builder(logExporter()).build()).build();
        Logger logger = provider.get("peer");
        List<String> sent = new ArrayList<>();
        for (int i = 0; i < count("logs", 5); i++) {
            String body = "java-log-" + i + " " + TEXT;
            logger.logRecordBuilder().setBody(body).setSeverity(Severity.INFO).emit();
            sent.add("\"" + body + "\"");
        }
        finish(provider.forceFlush());
        finish(provider.shutdown());
        return sent;
    }

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i].replaceFirst("^--", ""), arguments[i + 1]);
        }
        Emit emit = new Emit(options);
        String json = "{\"sdk\":\"java\",\"spans\":[" + String.join(",", emit.emitSpans())
                + "],\"metrics\":{" + String.join(",", emit.emitMetrics())
                + "},\"logs\":[" + String.join(",", emit.emitLogs()) + "]}";
        new PrintStream(System.out, true, StandardCharsets.UTF_8).println(json);
    }}

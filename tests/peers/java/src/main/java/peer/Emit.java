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
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporterBuilder;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporter;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporterBuilder;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporterBuilder;
import io.opentelemetry.exporter.otlp.logs.OtlpGrpcLogRecordExporter;
import io.opentelemetry.exporter.otlp.logs.OtlpGrpcLogRecordExporterBuilder;
import io.opentelemetry.exporter.otlp.metrics.OtlpGrpcMetricExporter;
import io.opentelemetry.exporter.otlp.metrics.OtlpGrpcMetricExporterBuilder;
import io.opentelemetry.exporter.otlp.trace.OtlpGrpcSpanExporter;
import io.opentelemetry.exporter.otlp.trace.OtlpGrpcSpanExporterBuilder;
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
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * Emits known telemetry through the OpenTelemetry SDK for Java and prints, as JSON, what it sent.
 * The options are those of every peer: see tests/peers/README.md. The SDK's environment variables
 * for headers and certificates are read here: its exporters leave them to its autoconfiguration.
 */
public final class Emit {
    private static final String TEXT = "\u00e4\u20ac\ud834\udd1e";

    private final Map<String, String> options;
    private final boolean grpc;
    private final boolean tls;
    private final String base;
    private final String compression;
    private final Map<String, String> headers;
    private final Resource resource;

    private Emit(Map<String, String> options) {
        this.options = options;
        this.grpc = options.getOrDefault("protocol", "http").equals("grpc");
        this.tls = options.containsKey("tls");
        this.base = (tls ? "https://" : "http://")
                + options.getOrDefault("endpoint", "127.0.0.1:4318");
        this.compression = options.getOrDefault("compression", "none");
        this.headers = headersOf(System.getenv().getOrDefault("OTEL_EXPORTER_OTLP_HEADERS", ""));
        this.resource = Resource.create(Attributes.of(
                AttributeKey.stringKey("service.name"), options.getOrDefault("service", "peer-java")));
    }

    private int count(String name, int otherwise) {
        return Integer.parseInt(options.getOrDefault(name, Integer.toString(otherwise)));
    }

    /** As in OTEL_EXPORTER_OTLP_HEADERS: a=b,c=d with the values in percent encoding. */
    private static Map<String, String> headersOf(String text) {
        Map<String, String> headers = new HashMap<>();
        for (String header : text.split(",")) {
            String[] pair = header.split("=", 2);
            if (pair.length == 2) {
                headers.put(pair[0].trim(), URLDecoder.decode(pair[1].trim(), StandardCharsets.UTF_8));
            }
        }
        return headers;
    }

    private static byte[] fileNamedBy(String variable) {
        try {
            return Files.readAllBytes(Path.of(System.getenv(variable)));
        } catch (IOException error) {
            throw new UncheckedIOException(variable, error);
        }
    }

    /** Hands the certificates to an exporter's builder, whose setClientTls takes the key first. */
    private void certify(Consumer<byte[]> trust, BiConsumer<byte[], byte[]> identify) {
        if (tls) {
            trust.accept(fileNamedBy("OTEL_EXPORTER_OTLP_CERTIFICATE"));
            identify.accept(fileNamedBy("OTEL_EXPORTER_OTLP_CLIENT_KEY"),
                    fileNamedBy("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"));
        }
    }

    private SpanExporter spanExporter() {
        if (grpc) {
            OtlpGrpcSpanExporterBuilder builder = OtlpGrpcSpanExporter.builder()
                    .setEndpoint(base).setCompression(compression).setHeaders(() -> headers);
            certify(builder::setTrustedCertificates, builder::setClientTls);
            return builder.build();
        }
        OtlpHttpSpanExporterBuilder builder = OtlpHttpSpanExporter.builder()
                .setEndpoint(base + "/v1/traces").setCompression(compression).setHeaders(() -> headers);
        certify(builder::setTrustedCertificates, builder::setClientTls);
        return builder.build();
    }

    private MetricExporter metricExporter() {
        if (grpc) {
            OtlpGrpcMetricExporterBuilder builder = OtlpGrpcMetricExporter.builder()
                    .setEndpoint(base).setCompression(compression).setHeaders(() -> headers);
            certify(builder::setTrustedCertificates, builder::setClientTls);
            return builder.build();
        }
        OtlpHttpMetricExporterBuilder builder = OtlpHttpMetricExporter.builder()
                .setEndpoint(base + "/v1/metrics").setCompression(compression).setHeaders(() -> headers);
        certify(builder::setTrustedCertificates, builder::setClientTls);
        return builder.build();
    }

    private LogRecordExporter logExporter() {
        if (grpc) {
            OtlpGrpcLogRecordExporterBuilder builder = OtlpGrpcLogRecordExporter.builder()
                    .setEndpoint(base).setCompression(compression).setHeaders(() -> headers);
            certify(builder::setTrustedCertificates, builder::setClientTls);
            return builder.build();
        }
        OtlpHttpLogRecordExporterBuilder builder = OtlpHttpLogRecordExporter.builder()
                .setEndpoint(base + "/v1/logs").setCompression(compression).setHeaders(() -> headers);
        certify(builder::setTrustedCertificates, builder::setClientTls);
        return builder.build();
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
        for (int i = 0; i < arguments.length; i++) {
            String name = arguments[i].replaceFirst("^--", "");
            options.put(name, name.equals("tls") ? "" : arguments[++i]);
        }
        Emit emit = new Emit(options);
        String json = "{\"sdk\":\"java\",\"spans\":[" + String.join(",", emit.emitSpans())
                + "],\"metrics\":{" + String.join(",", emit.emitMetrics())
                + "},\"logs\":[" + String.join(",", emit.emitLogs()) + "]}";
        new PrintStream(System.out, true, StandardCharsets.UTF_8).println(json);
    }
}

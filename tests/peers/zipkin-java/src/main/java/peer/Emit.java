// SPDX-License-Identifier: Apache-2.0
package peer;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import zipkin2.Endpoint;
import zipkin2.Span;
import zipkin2.reporter.BytesMessageSender;
import zipkin2.reporter.SpanBytesEncoder;
import zipkin2.reporter.urlconnection.URLConnectionSender;

/**
 * Sends known spans by Zipkin's own reporter and prints them as Zipkin's JSON of API v2.
 * Usage: Emit v1-json|v1-thrift|v2-json|v2-proto HOST:PORT SERVICE
 */
public final class Emit {
    private static final long START_US = 1700000000123456L;
    private static final String TEXT = "ä€𝄞";

    private static Span.Builder span(String trace, String id, String service) {
        return Span.newBuilder()
            .traceId(trace)
            .id(id)
            .localEndpoint(endpoint(service, "10.0.0.1", 8080))
            .putTag("deployment", "eu");
    }

    private static Endpoint endpoint(String service, String ip, int port) {
        return Endpoint.newBuilder().serviceName(service).ip(ip).port(port).build();
    }

    private static List<Span> spans(String service) {
        String root = String.format("%016x", System.nanoTime() | 1);
        String trace = "4bf92f3577b34da6" + root;
        return List.of(
            span(trace, root, service)
                .name("get /cart")
                .kind(Span.Kind.SERVER)
                .timestamp(START_US)
                .duration(25000)
                .remoteEndpoint(endpoint(null, "10.0.0.9", 40000))
                .addAnnotation(START_US + 1000, "looked up")
                .addAnnotation(START_US + 2000, TEXT)
                .putTag("http.path", "/cart")
                .putTag("text", TEXT)
                .build(),
            span(trace, "00f067aa0ba902b7", service)
                .parentId(root)
                .name("price")
                .kind(Span.Kind.CLIENT)
                .timestamp(START_US + 3000)
                .duration(5001)
                .remoteEndpoint(endpoint("prices", "2001:db8::7", 9000))
                .putTag("error", "no such price")
                .build(),
            span(trace, "00f067aa0ba902b8", service)
                .parentId(root)
                .name("mail")
                .timestamp(START_US + 9000)
                .duration(10)
                .build());
    }

    public static void main(String[] arguments) throws Exception {
        String[] format = arguments[0].split("-");
        SpanBytesEncoder encoder = switch (arguments[0]) {
            case "v1-json" -> SpanBytesEncoder.JSON_V1;
            case "v1-thrift" -> SpanBytesEncoder.THRIFT;
            case "v2-proto" -> SpanBytesEncoder.PROTO3;
            default -> SpanBytesEncoder.JSON_V2;
        };
        BytesMessageSender sender = URLConnectionSender.newBuilder()
            .endpoint("http://" + arguments[1] + "/api/" + format[0] + "/spans")
            .encoding(encoder.encoding())
            .build();
        List<Span> spans = spans(arguments[2].toLowerCase(Locale.ROOT));
        // Sends at once, so that an error ends the program.
        sender.send(spans.stream().map(encoder::encode).toList());
        sender.close();
        byte[] list = zipkin2.codec.SpanBytesEncoder.JSON_V2.encodeList(spans);
        System.out.println("{\"spans\": " + new String(list, StandardCharsets.UTF_8) + "}");
    }
}

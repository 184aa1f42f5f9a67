/* SPDX-License-Identifier: Apache-2.0 */
/* bench_payload: writes one OTLP trace request to standard output, for curl and for looking at. */
#include "tests/bench/payload.h"

#include <getopt.h>
#include <stdio.h>

#include <zstd.h>

enum { ZSTD_LEVEL = 3 }; /* the default, also of the Go collector */

static const struct option long_options[] = {
    {"spans", required_argument, NULL, 's'},
    {"span-bytes", required_argument, NULL, 'b'},
    {"first", required_argument, NULL, 'f'},
    {"gzip", no_argument, NULL, 'z'},
    {"zstd", no_argument, NULL, 'Z'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static struct byte_buffer compress_zstd(const struct payload *payload)
{
    struct byte_buffer out = {0};

    byte_buffer_reserve(&out, ZSTD_compressBound(payload->body.size));
    out.size =
        ZSTD_compress(out.data, out.capacity, payload->body.data, payload->body.size, ZSTD_LEVEL);
    if (ZSTD_isError(out.size))
        die("zstd: %s", ZSTD_getErrorName(out.size));
    return out;
}

int main(int argc, char **argv)
{
    uint32_t spans = 1000;
    uint32_t span_bytes = 672;
    uint64_t first = 1;
    bool gzip = false;
    bool zstd = false;

    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (option == 's')
            spans = (uint32_t)number_option("spans", optarg, 1, PAYLOAD_SPANS_MAX);
        else if (option == 'b')
            span_bytes = (uint32_t)number_option("span-bytes", optarg, PAYLOAD_SPAN_BYTES_MIN,
                                                 PAYLOAD_SPAN_BYTES_MAX);
        else if (option == 'f')
            first = number_option("first", optarg, 1, UINT64_MAX);
        else if (option == 'z')
            gzip = true;
        else if (option == 'Z')
            zstd = true;
        else
            die("usage: bench_payload [--spans N] [--span-bytes N] [--first N] [--gzip | --zstd] "
                "> FILE");
    }

    struct payload payload = payload_make(spans, span_bytes, first);
    struct byte_buffer body = gzip   ? payload_gzip(&payload)
                              : zstd ? compress_zstd(&payload)
                                     : payload.body;
    bool written = fwrite(body.data, 1, body.size, stdout) == body.size && fflush(stdout) == 0;
    if (gzip || zstd)
        byte_buffer_free(&body);
    payload_free(&payload);
    if (!written)
        die("cannot write the payload");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bench_payload: writes one OTLP trace request to standard output, for curl and for looking at. */
#include "tests/bench/payload.h"

#include <getopt.h>
#include <stdio.h>

static const struct option long_options[] = {
    {"spans", required_argument, NULL, 's'}, {"span-bytes", required_argument, NULL, 'b'},
    {"first", required_argument, NULL, 'f'}, {"gzip", no_argument, NULL, 'z'},
    {"help", no_argument, NULL, 'h'},        {0},
};

int main(int argc, char **argv)
{
    uint32_t spans = 1000;
    uint32_t span_bytes = 672;
    uint64_t first = 1;
    bool gzip = false;

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
        else
            die("usage: bench_payload [--spans N] [--span-bytes N] [--first N] [--gzip] > FILE");
    }

    struct payload payload = payload_make(spans, span_bytes, first);
    struct byte_buffer body = gzip ? payload_gzip(&payload) : payload.body;
    bool written = fwrite(body.data, 1, body.size, stdout) == body.size && fflush(stdout) == 0;
    if (gzip)
        byte_buffer_free(&body);
    payload_free(&payload);
    if (!written)
        die("cannot write the payload");
    return 0;
}

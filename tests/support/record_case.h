/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as OTLP/JSON through one processor of a whole service: what comes out, as JSON. */
#pragma once

#include <stdint.h>

#include "src/base/signal_kind.h"
#include "tests/support/harness.h"

struct batch;

/* One pipeline of that signal with the processor `name`, whose section is in YAML's flow style. The
 * exporter holds what it gets. */
struct harness *record_harness(const char *name, const char *section, enum signal_kind signal);
/* It is refused, with a problem that contains the text. */
void record_refused(const char *name, const char *section, enum signal_kind signal,
                    const char *text);
/* A request from JSON, cut into two parts if is_cut. */
struct batch *record_batch(enum signal_kind signal, const char *json, bool is_cut);
/* Sends the request, which is resolved then or later. */
struct test_request *record_send(struct harness *harness, enum signal_kind signal,
                                 const char *json);
/* The same to that lane. */
struct test_request *record_send_on(struct harness *harness, unsigned lane, enum signal_kind signal,
                                    const char *json);
/* All that the exporter holds, as JSON, one line each; it accepts that. Freed with free(). */
char *record_output(struct harness *harness, enum signal_kind signal);
/* Sends json, once in one part and once in two, and compares what comes out; "": nothing. */
void record_compare(const char *name, const char *section, enum signal_kind signal,
                    const char *json, const char *expected);

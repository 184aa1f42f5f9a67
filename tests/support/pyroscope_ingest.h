/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's POST /ingest: query, grammar of `name`, multipart form, and the name that the real
 * server makes out of a profile's types. */
#pragma once

struct http_request;
struct pyroscope_server;

/* Judges a request that has its body. Returns the status of the response; last_error says why. */
unsigned pyroscope_ingest_take(struct pyroscope_server *server, const struct http_request *request);

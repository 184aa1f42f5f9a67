# SPDX-License-Identifier: Apache-2.0
"""One-line mutations over the promises of the README, and the tests that must notice each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str  # the promise that it breaks
    file: str
    old: str  # found once in the file
    new: str
    tests: tuple  # names of ctest; one of them has to fail


MUTANTS = [
    # Authentication
    Mutant("cors: an origin ends as its pattern does", "src/listen_cors.c",
           "strncasecmp(star + 1, origin_text + origin.size - after, after) == 0", "true",
           ("test_listen_cors",)),
    # Retries
    Mutant("retry: a back-end's hint is the least delay", "src/retry.c",
           "    if (delay_ns < hint_ns)\n        delay_ns = hint_ns;\n", "", ("test_retry",)),
    Mutant("retry: 503 is tried again", "exporters/http_outcome.c",
           " || status == 503", "", ("test_otlp_http_exporter",)),
    Mutant("memory_limiter: refuses above its soft limit", "processors/memory_limiter_processor.c",
           "bool is_above = used_bytes > self->soft_limit_bytes;",
           "bool is_above = false && used_bytes > self->soft_limit_bytes;",
           ("test_memory_pipeline",)),
]

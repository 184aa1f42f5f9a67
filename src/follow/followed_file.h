/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of one file: its first bytes, by which it is known again under any name, and how
 * far it has been read. Of the follower's thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget;

struct followed_file {
    char *path;   /* where it was seen last */
    int fd;       /* -1: not open */
    bool is_gzip; /* its bytes are gzip's (RFC 1952) */
    /* Plain: all before is done. gzip: the members before are; of the bytes that those from there
     * on inflate to, `inflated` are. */
    uint64_t offset;
    uint64_t inflated;
    uint64_t lines;      /* that were read */
    bool is_skipping;    /* in a line that was cut */
    uint64_t changed_ns; /* clock_now_ns: when the unfinished last line was longer than before … */
    uint64_t tail_bytes; /* … and its length then */
    uint64_t tried_size; /* gzip that ends too early: its size then; 0: none */
    uint64_t charged;
    size_t set_place; /* of the set that it is in */
    size_t first_size;
    uint8_t first[]; /* its first bytes: at most fingerprint_size, for which there is room */
};

/* NULL: no memory. */
struct followed_file *followed_file_create(struct budget *budget, size_t fingerprint_size);
/* Closes it. NULL is a no-op. */
void followed_file_destroy(struct budget *budget, struct followed_file *file);
void followed_file_close(struct followed_file *file);
void followed_file_set_path(struct followed_file *file, const char *path);

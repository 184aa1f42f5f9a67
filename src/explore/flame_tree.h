/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees from OTLP profiles, for the explore page: adds up the samples that a query picks from
 * any number of requests, each with a dictionary of its own, and writes the tree, the callers and
 * callees of one function (sandwich), or the functions by weight (top), pruned to what a screen of
 * a given width can show. Frames are equal when their function's name is (no function: mapping's
 * base name + hexadecimal address); inlined lines are frames of their own. One owner, one thread at
 * a time (the explore worker). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;
struct json_output;
struct flame_tree;

enum {
    FLAME_SIDES_MAX = 2,    /* of a comparison: a and b */
    FLAME_DEPTH_MAX = 8192, /* frames of a stack from the root; the rest is cut: truncatedDepth */
    FLAME_TYPES_MAX = 64,   /* types told apart; more are counted under the last */
    FLAME_RESPONSE_BYTES_MAX = 200 * 1024,
};

enum flame_result {
    FLAME_ADDED,
    FLAME_NO_MEMORY, /* budget or bytes_max refuse; the tree has what it had, the request maybe in
                        part */
    FLAME_STOPPED,   /* must_stop said so */
};

/* Which samples count. */
struct flame_filter {
    /* Called once for each link of a request's dictionary; NULL: every sample, linked or not. Unset
     * links are never passed: their samples count only where picks is NULL. 16 and 8 bytes. */
    bool (*picks)(void *arg, const uint8_t *trace_id, const uint8_t *span_id);
    void *arg;
    struct slice service; /* service.name of the resource; without data: any */
    /* Of the sample's timestamps if it has some (each counts by itself, with its own value), else
     * of the profile (any overlap counts). 0 and UINT64_MAX: all. Half open: start <= t < end. */
    uint64_t start_unix_ns;
    uint64_t end_unix_ns;
};

struct flame_settings {
    struct budget *budget; /* NULL: not charged */
    uint64_t bytes_max;    /* of memory, the whole tree */
    unsigned sides;        /* 1, or 2 to compare */
    /* As in struct flame_type; without data: the best there is (cpu, then wall, then the one with
     * most samples). Types that are not asked for are counted only. */
    struct slice type;
    /* Asked every few thousand samples or nodes, in _add and in _write: true ends the work. NULL:
     * never. */
    bool (*must_stop)(void *arg);
    void *arg;
};

/* NULL: no memory. */
struct flame_tree *flame_tree_create(const struct flame_settings *settings);
/* NULL is a no-op. */
void flame_tree_destroy(struct flame_tree *tree);

/* Adds the samples of one request in layout 1.10 that has passed otlp_check and profile_normalize
 * (all indices are inside the tables). The request need not outlive the call. side <
 * settings.sides. */
enum flame_result flame_tree_add(struct flame_tree *tree, unsigned side, struct slice request,
                                 const struct flame_filter *filter);

/* What was picked, of every type, most samples first. Names: "cpu", "wall", "alloc_space", … : the
 * sample type's own name, in lower case, but that OTLP's and pprof's ways to say CPU time ("cpu",
 * "on-cpu", "samples" of period type cpu) are all "cpu". */
struct flame_type {
    struct slice type; /* of the tree */
    struct slice unit;
    uint64_t samples[FLAME_SIDES_MAX];
    int64_t total[FLAME_SIDES_MAX];
};
size_t flame_tree_types(const struct flame_tree *tree, const struct flame_type **ret_types);
/* The one that is, or will be, drawn; NULL: no samples. */
const struct flame_type *flame_tree_type(const struct flame_tree *tree);

enum flame_view { FLAME_VIEW_TREE, FLAME_VIEW_SANDWICH, FLAME_VIEW_TOP };

struct flame_drawing {
    enum flame_view view;
    unsigned width; /* pixels: nodes below half a pixel are left out, children of them, too, and
                       counted in "pruned" */
    struct slice function; /* of the sandwich */
    size_t bytes_max;      /* of the JSON: prunes wider nodes until it fits; at most
                              FLAME_RESPONSE_BYTES_MAX is sensible */
};

/* Writes the members of a JSON object, without braces and without a comma before or after:
 *   "type":"cpu","unit":"nanoseconds","total":T,"samples":N,
 *   "confidence":{"samples":N,"percent":P},         P: about 100/sqrt(N), rounded up in steps of 5
 * above 10; 100 below one sample "types":[{"type","unit","samples","total"}…], "names":["…"], of
 * functions; 0 is "all"; each once "tree":[nameIndex,total,self,childCount, …]…    see below
 *   "pruned":n,"truncatedDepth":bool
 * tree: an array of arrays [nameIndex,total,self,childCount], depth first, children by total,
 * largest first (then name). SANDWICH: "callers":[…] (inverted tree: its root is the function) and
 * "callees":[…], both in that form, in place of "tree". TOP:
 * "top":[[nameIndex,total,self,samples]…] by self, at most 1 000. Two sides: rows
 * [nameIndex,totalA,totalB,selfA,selfB,childCount], pruned by the larger share of the sides'
 * totals, "total" and "samples" are sums, and "a":{"total","samples"},"b":{"total","samples"} are
 * added; types have "a" and "b" in place of samples and total: {"type","unit","a":{…},"b":{…}}.
 * (TOP: [nameIndex,totalA,totalB,selfA,selfB].)
 * FLAME_ADDED, or FLAME_NO_MEMORY (json_output's sticky error tells, too), or FLAME_STOPPED. */
enum flame_result flame_tree_write(struct flame_tree *tree, const struct flame_drawing *wanted,
                                   struct json_output *output);
/* "main;work;inner 12\n" for each stack with a self value, unpruned, side 0 (";" in names becomes
 * ":"). */
enum flame_result flame_tree_write_folded(struct flame_tree *tree, struct json_output *output);

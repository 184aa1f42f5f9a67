/* SPDX-License-Identifier: Apache-2.0 */
/* Globs for names of attributes, as patterns. Any thread. */
#pragma once

struct error;
struct pattern;

/* A glob as github.com/gobwas/glob reads it, dots being separators: * and ? (no dot), ** (any),
 * [abc], [!a-z], {one,two}, and \ before what is meant as it is. NULL: error has the reason. */
struct pattern *name_glob_create(const char *glob, struct error *error);

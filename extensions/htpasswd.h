/* SPDX-License-Identifier: Apache-2.0 */
/* Users and passwords in the form of Apache's htpasswd: bcrypt ($2a$, $2b$, $2y$), SHA-crypt ($5$,
 * $6$), MD5 ($1$, $apr1$), {SHA}, {SSHA} and plain text. One owner, one thread, but for trials. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct error;
struct htpasswd;
/* One check of a password, which may take long. */
struct htpasswd_trial;

/* What one check may cost: one or two seconds. */
enum { BCRYPT_COST_MAX = 15, SHA_CRYPT_ROUNDS_MAX = 1000000 };

/* NULL: a library that hashing needs is missing. */
struct htpasswd *htpasswd_create(struct error *error);
/* NULL is a no-op. */
void htpasswd_destroy(struct htpasswd *htpasswd);
/* Removes all users. */
void htpasswd_clear(struct htpasswd *htpasswd);
/* False: a password is in a scheme that cannot be checked, such as yescrypt, argon2 or DES. The Go
 * collector takes these for plain text, so the hash itself would be accepted. Or checking it would
 * take too long. The error has line and user. */
bool htpasswd_check(struct slice text, struct error *error);
/* Adds "user:password" lines; a user's last line wins. Returns the number of malformed lines. */
size_t htpasswd_add(struct htpasswd *htpasswd, struct slice text);
size_t htpasswd_users(const struct htpasswd *htpasswd);
/* Takes as long for an unknown user as for the first known one: tens of milliseconds with bcrypt.
 */
bool htpasswd_matches(const struct htpasswd *htpasswd, const char *user, const char *password);
/* The same for another thread, with copies of what it needs. NULL: it takes no time, or there are
 * no users: htpasswd_matches. */
struct htpasswd_trial *htpasswd_trial_create(const struct htpasswd *htpasswd, const char *user,
                                             const char *password);
/* About how long it will take. */
uint64_t htpasswd_trial_ns(const struct htpasswd_trial *trial);
/* Any thread. */
bool htpasswd_trial_run(const struct htpasswd_trial *trial);
/* NULL is a no-op. */
void htpasswd_trial_destroy(struct htpasswd_trial *trial);

/* SPDX-License-Identifier: Apache-2.0 */
/* Users and passwords in the form of Apache's htpasswd: bcrypt ($2a$, $2b$, $2y$), SHA-crypt ($5$,
 * $6$), MD5 ($1$, $apr1$), {SHA}, {SSHA} and plain text. One owner, one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/base/slice.h"

struct error;
struct htpasswd;

/* NULL: a library that hashing needs is missing. */
struct htpasswd *htpasswd_create(struct error *error);
/* NULL is tolerated. */
void htpasswd_destroy(struct htpasswd *htpasswd);
/* Forgets all users. */
void htpasswd_clear(struct htpasswd *htpasswd);
/* False when a password is in a scheme that this cannot check, such as yescrypt, argon2 or DES: Go
 * takes these for plain text, and who knew the hash would get in. The error has line and user. */
bool htpasswd_check(struct slice text, struct error *error);
/* Adds "user:password" lines; of a user who has several, the last one counts. Returns how many
 * lines could not be understood. */
size_t htpasswd_add(struct htpasswd *htpasswd, struct slice text);
size_t htpasswd_users(const struct htpasswd *htpasswd);
/* Takes as long for a user who is not there as for the first one who is. Tens of milliseconds with
 * bcrypt. */
bool htpasswd_matches(const struct htpasswd *htpasswd, const char *user, const char *password);

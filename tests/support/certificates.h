/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made by openssl for one test program (make-certificates says which). */
#pragma once

#include <stdbool.h>

/* A folder of its own with all of them; false without the openssl command. Once. */
bool certificates_make(void);
void certificates_remove(void);
/* The path of one, "server.pem". Static memory. NULL gives NULL. */
const char *certificates_path(const char *name);
/* Its text, to be freed with mem_free. */
char *certificates_text(const char *name);
/* Puts one in the place of another. */
void certificates_copy(const char *from, const char *to);
/* Puts these bytes there. */
void certificates_write(const char *name, const char *text);

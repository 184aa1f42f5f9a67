/* SPDX-License-Identifier: Apache-2.0 */
/* Digests by OpenSSL, which is loaded when the first configuration needs it: linked, it would cost
 * each process 1.4 MB of memory at rest. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

enum {
    DIGEST_SHA256_BYTES = 32,
    DIGEST_SHA512_BYTES = 64,
    DIGEST_SHA3_256_BYTES = 32,
    DIGEST_SHA1_BYTES = 20,
    DIGEST_MD5_BYTES = 16
};

struct error;

/* Loads the library. At start-up, before the first digest. */
bool digest_prepare(struct error *error);
/* After a successful digest_prepare. */
void digest_sha256(struct slice input, uint8_t ret_digest[static DIGEST_SHA256_BYTES]);
void digest_sha512(struct slice input, uint8_t ret_digest[static DIGEST_SHA512_BYTES]);
void digest_sha3_256(struct slice input, uint8_t ret_digest[static DIGEST_SHA3_256_BYTES]);
/* HMAC (RFC 2104). */
void digest_hmac_sha256(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA256_BYTES]);
void digest_hmac_sha512(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA512_BYTES]);
/* For formats that require them (htpasswd) and users who ask for them; neither is safe for new
 * uses. */
void digest_sha1(struct slice input, uint8_t ret_digest[static DIGEST_SHA1_BYTES]);
void digest_md5(struct slice input, uint8_t ret_digest[static DIGEST_MD5_BYTES]);

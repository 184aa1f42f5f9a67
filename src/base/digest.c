/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of libcrypto, loaded by name. Any thread. */
#include "src/base/digest.h"

#include <assert.h>
#include <openssl/evp.h>

#include "src/base/dynlib.h"
#include "src/base/error.h"

static struct functions {
    DYNLIB_MEMBER(EVP_Q_digest)
    DYNLIB_MEMBER(EVP_Q_mac)
} functions;
static struct dynlib libcrypto = {
    .name = "libcrypto.so.3",
    .symbols = (const struct dynlib_symbol[]){DYNLIB_ROW(struct functions, EVP_Q_digest),
                                              DYNLIB_ROW(struct functions, EVP_Q_mac),
                                              {NULL, 0}},
    .functions = &functions};

bool digest_prepare(struct error *error)
{
    if (dynlib_load(&libcrypto))
        return true;
    return error_set(error,
                     "hashing needs OpenSSL, and %s cannot be loaded; install the package libssl3",
                     libcrypto.name);
}

static void compute(const char *name, struct slice input, uint8_t *ret_digest, size_t size)
{
    static const uint8_t nothing;
    size_t written = 0;
    int is_done = functions.EVP_Q_digest(NULL, name, NULL, input.size > 0 ? input.data : &nothing,
                                         input.size, ret_digest, &written);
    assert(is_done == 1 && written == size);
}

void digest_sha256(struct slice input, uint8_t ret_digest[static DIGEST_SHA256_BYTES])
{
    compute("SHA256", input, ret_digest, DIGEST_SHA256_BYTES);
}

void digest_sha512(struct slice input, uint8_t ret_digest[static DIGEST_SHA512_BYTES])
{
    compute("SHA512", input, ret_digest, DIGEST_SHA512_BYTES);
}

void digest_sha3_256(struct slice input, uint8_t ret_digest[static DIGEST_SHA3_256_BYTES])
{
    compute("SHA3-256", input, ret_digest, DIGEST_SHA3_256_BYTES);
}

static void compute_hmac(const char *name, struct slice key, struct slice input,
                         uint8_t *ret_digest, size_t size)
{
    static const uint8_t nothing;
    size_t written = 0;
    const uint8_t *mac = functions.EVP_Q_mac(
        NULL, "HMAC", NULL, name, NULL, key.size > 0 ? key.data : &nothing, key.size,
        input.size > 0 ? input.data : &nothing, input.size, ret_digest, size, &written);
    assert(mac != NULL && written == size);
}

void digest_hmac_sha256(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA256_BYTES])
{
    compute_hmac("SHA256", key, input, ret_digest, DIGEST_SHA256_BYTES);
}

void digest_hmac_sha512(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA512_BYTES])
{
    compute_hmac("SHA512", key, input, ret_digest, DIGEST_SHA512_BYTES);
}

void digest_sha1(struct slice input, uint8_t ret_digest[static DIGEST_SHA1_BYTES])
{
    compute("SHA1", input, ret_digest, DIGEST_SHA1_BYTES);
}

void digest_md5(struct slice input, uint8_t ret_digest[static DIGEST_MD5_BYTES])
{
    compute("MD5", input, ret_digest, DIGEST_MD5_BYTES);
}

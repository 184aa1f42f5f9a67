/* SPDX-License-Identifier: Apache-2.0 */
/* htpasswd files. libcrypt, loaded on first use, checks bcrypt and the crypt forms; Apache's MD5
 * differs from crypt's in one word, so it is implemented here. One thread, but for trials. */
#include "extensions/htpasswd.h"

#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/dynlib.h"
#include "src/base/error.h"
#include "src/base/hash_table.h"
#include "src/base/mem.h"
#include "src/base/random.h"
#include "src/base/secret.h"

#include <assert.h>
#include <crypt.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { APR1_SALT_BYTES_MAX = 8, APR1_ROUNDS = 1000, PASSWORD_BYTES_MAX = 1024 };

/* What checks take on a usual core: bcrypt at a cost of 0, and one round of the others. */
#define BCRYPT_NS ((uint64_t)60 * NS_PER_US)
#define ROUND_NS  NS_PER_US
enum { ROUNDS_DEFAULT = 5000 };

struct entry;
typedef bool (*matches_fn)(const struct entry *entry, const char *password);

struct entry {
    char *user;
    char *stored; /* what follows the colon */
    matches_fn matches;
};

struct htpasswd {
    size_t count;
    size_t capacity;
    struct entry *entries;
    struct hash_table places; /* of entries + 1, by user */
};

static struct functions {
    DYNLIB_MEMBER(crypt_r)
} functions;
static struct dynlib libcrypt = {
    .name = "libcrypt.so.1",
    .symbols = (const struct dynlib_symbol[]){DYNLIB_ROW(struct functions, crypt_r), {NULL, 0}},
    .functions = &functions};

static bool matches_crypt(const struct entry *entry, const char *password)
{
    struct crypt_data *data = mem_zalloc(sizeof(*data));
    assert(functions.crypt_r != NULL);
    const char *hashed = functions.crypt_r(password, entry->stored, data);
    bool is_equal = hashed != NULL && hashed[0] != '*' &&
                    secret_equal(slice_of_text(hashed), slice_of_text(entry->stored));
    explicit_bzero(data, sizeof(*data));
    mem_free(data);
    return is_equal;
}

static bool matches_plain(const struct entry *entry, const char *password)
{
    static const char prefix[] = "{PLAIN}"; /* nginx writes it */
    struct slice presented = slice_of_text(password);
    struct slice stored = slice_of_text(entry->stored);
    bool is_equal = secret_equal(presented, stored);
    if (strncmp(entry->stored, prefix, strlen(prefix)) == 0)
        is_equal |= secret_equal(presented, slice_of_text(entry->stored + strlen(prefix)));
    return is_equal;
}

/* Decodes what follows a prefix: a SHA-1 digest and perhaps a salt. False: malformed. */
static bool decode_sha(const char *text, uint8_t *room, size_t *ret_size)
{
    return base64_decode(slice_of_text(text), room, ret_size) && *ret_size >= DIGEST_SHA1_BYTES;
}

static bool matches_salted(const char *encoded, const char *password)
{
    uint8_t digest[DIGEST_SHA1_BYTES];
    size_t size = 0;
    size_t length = strlen(password);
    uint8_t *stored = mem_alloc(strlen(encoded) + 1);
    bool is_known = decode_sha(encoded, stored, &size);
    assert(is_known);
    size_t salt = size - DIGEST_SHA1_BYTES;
    uint8_t *salted = mem_alloc(length + salt);
    memcpy(salted, password, length);
    memcpy(salted + length, stored + DIGEST_SHA1_BYTES, salt);
    digest_sha1(slice_of(salted, length + salt), digest);
    bool is_equal = is_known && secret_equal(slice_of(digest, sizeof(digest)),
                                             slice_of(stored, sizeof(digest)));
    explicit_bzero(salted, length + salt);
    mem_free(salted);
    mem_free(stored);
    return is_equal;
}

static bool matches_sha(const struct entry *entry, const char *password)
{
    return matches_salted(entry->stored + strlen("{SHA}"), password);
}

static bool matches_ssha(const struct entry *entry, const char *password)
{
    return matches_salted(entry->stored + strlen("{SSHA}"), password);
}

/* The input of one step of Apache's MD5. */
struct md5_input {
    uint8_t bytes[3 * PASSWORD_BYTES_MAX];
    size_t size;
};

static void put(struct md5_input *input, const void *data, size_t size)
{
    assert(size <= sizeof(input->bytes) - input->size);
    memcpy(input->bytes + input->size, data, size);
    input->size += size;
}

static void hash(struct md5_input *input, uint8_t digest[static DIGEST_MD5_BYTES])
{
    assert(input->size <= sizeof(input->bytes));
    digest_md5(slice_of(input->bytes, input->size), digest);
    input->size = 0;
}

/* Apache's apr_md5_encode: crypt's MD5 with another magic word. */
static void apr1_digest(struct slice password, struct slice salt, uint8_t digest[DIGEST_MD5_BYTES])
{
    struct md5_input input = {.size = 0};
    assert(password.size <= PASSWORD_BYTES_MAX / 2);
    put(&input, password.data, password.size);
    put(&input, salt.data, salt.size);
    put(&input, password.data, password.size);
    hash(&input, digest);
    put(&input, password.data, password.size);
    put(&input, "$apr1$", strlen("$apr1$"));
    put(&input, salt.data, salt.size);
    for (size_t left = password.size; left > 0; left -= left < 16 ? left : 16)
        put(&input, digest, left < DIGEST_MD5_BYTES ? left : DIGEST_MD5_BYTES);
    for (size_t bits = password.size; bits > 0; bits >>= 1)
        put(&input, (bits & 1) == 1 ? (const void *)"" : password.data, 1);
    hash(&input, digest);
    for (unsigned round = 0; round < APR1_ROUNDS; round++) {
        bool is_odd = round % 2 == 1;
        if (is_odd)
            put(&input, password.data, password.size);
        else
            put(&input, digest, DIGEST_MD5_BYTES);
        if (round % 3 != 0)
            put(&input, salt.data, salt.size);
        if (round % 7 != 0)
            put(&input, password.data, password.size);
        if (is_odd)
            put(&input, digest, DIGEST_MD5_BYTES);
        else
            put(&input, password.data, password.size);
        hash(&input, digest);
    }
    explicit_bzero(&input, sizeof(input));
}

static bool matches_apr1(const struct entry *entry, const char *password)
{
    static const char digits[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const uint8_t order[5][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}};
    enum { ENCODED_BYTES = 22 };
    uint8_t digest[DIGEST_MD5_BYTES];
    char encoded[ENCODED_BYTES];
    size_t used = 0;
    const char *salt = entry->stored + strlen("$apr1$");
    size_t salt_size = strcspn(salt, "$");
    assert(salt[salt_size] == '$');
    if (strlen(password) > PASSWORD_BYTES_MAX / 2)
        return false;
    apr1_digest(slice_of_text(password), slice_of(salt, salt_size), digest);
    for (size_t i = 0; i < 6; i++) {
        uint32_t bits = i == 5 ? digest[11]
                               : (uint32_t)digest[order[i][0]] << 16 |
                                     (uint32_t)digest[order[i][1]] << 8 | digest[order[i][2]];
        for (unsigned j = 0; j < (i == 5 ? 2u : 4u); j++, bits >>= 6)
            encoded[used++] = digits[bits & 0x3f];
    }
    assert(used == ENCODED_BYTES);
    return secret_equal(slice_of(encoded, used), slice_of_text(salt + salt_size + 1));
}

static matches_fn form_of(const char *stored)
{
    static const struct {
        const char *prefix;
        matches_fn matches;
    } forms[] = {
        {"$apr1$", matches_apr1}, {"$1$", matches_crypt},   {"{SHA}", matches_sha},
        {"$2y$", matches_crypt},  {"$2a$", matches_crypt},  {"$2b$", matches_crypt},
        {"$2x$", matches_crypt},  {"{SSHA}", matches_ssha}, {"$5$", matches_crypt},
        {"$6$", matches_crypt},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strncmp(stored, forms[i].prefix, strlen(forms[i].prefix)) == 0)
            return forms[i].matches;
    return matches_plain;
}

/* A copy of the first line without surrounding white space. */
static char *take_line(struct slice text, struct slice *ret_rest)
{
    const uint8_t *end = memchr(text.data, '\n', text.size);
    size_t size = end != NULL ? (size_t)(end - text.data) : text.size;
    struct slice line = slice_trim(slice_of(text.data, size));
    *ret_rest = end != NULL ? slice_of(end + 1, text.size - size - 1) : slice_of(NULL, 0);
    char *copy = mem_alloc(line.size + 1);
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    copy[line.size] = '\0';
    return copy;
}

/* The length of a scheme's name: "$y$", "{CRYPT}", or all of a DES hash. 0: it is plain text. */
static size_t scheme_of(const char *stored)
{
    static const char letters[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-";
    size_t name = stored[0] != '\0' ? strspn(stored + 1, letters) : 0;
    bool is_named = (stored[0] == '$' && stored[1 + name] == '$') ||
                    (stored[0] == '{' && stored[1 + name] == '}');
    if (is_named && name > 0)
        return name + 2;
    size_t size = strlen(stored);
    bool is_des = size == 13 && strspn(stored, letters) == size;
    bool is_extended_des = size == 20 && stored[0] == '_' && name == size - 1;
    return is_des || is_extended_des ? size : 0;
}

/* The number behind a prefix, if it is above max; else 0. */
static unsigned long cost_above(const char *stored, const char *prefix, unsigned long max)
{
    size_t size = strlen(prefix);
    unsigned long cost = strncmp(stored, prefix, size) == 0 ? strtoul(stored + size, NULL, 10) : 0;
    return cost > max ? cost : 0;
}

static unsigned long bcrypt_above(const char *stored, unsigned long max)
{
    static const char *const prefixes[] = {"$2a$", "$2b$", "$2x$", "$2y$"};
    unsigned long cost = 0;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && cost == 0; i++)
        cost = cost_above(stored, prefixes[i], max);
    return cost;
}

static unsigned long rounds_above(const char *stored, unsigned long max)
{
    return cost_above(stored, "$5$rounds=", max) + cost_above(stored, "$6$rounds=", max);
}

/* Whether one check of the password would hold up others for too long. */
static bool check_cost(const char *stored, size_t line, const char *user, int user_size,
                       struct error *error)
{
    unsigned long cost = bcrypt_above(stored, BCRYPT_COST_MAX);
    if (cost > 0)
        return error_set(error,
                         "line %zu of htpasswd, user \"%.*s\": found a cost of %lu, expected at "
                         "most %d with bcrypt",
                         line, user_size, user, cost, BCRYPT_COST_MAX);
    cost = rounds_above(stored, SHA_CRYPT_ROUNDS_MAX);
    if (cost > 0)
        return error_set(error,
                         "line %zu of htpasswd, user \"%.*s\": found %lu rounds, expected at most "
                         "%d with SHA-crypt",
                         line, user_size, user, cost, SHA_CRYPT_ROUNDS_MAX);
    return true;
}

bool htpasswd_check(struct slice text, struct error *error)
{
    static const char plain[] = "{PLAIN}";
    bool is_fine = true;
    for (size_t number = 1; is_fine && text.size > 0; number++) {
        struct slice rest;
        char *line = take_line(text, &rest);
        const char *colon = strchr(line, ':');
        size_t scheme = 0;
        if (colon != NULL && form_of(colon + 1) == matches_plain &&
            strncmp(colon + 1, plain, strlen(plain)) != 0)
            scheme = scheme_of(colon + 1);
        int user_size = colon == NULL ? 0 : (int)(colon - line < 64 ? colon - line : 64);
        if (colon != NULL && scheme == 0)
            is_fine = check_cost(colon + 1, number, line, user_size, error);
        if (scheme > 0) {
            /* Shows the user and the scheme, not the hash. */
            bool is_des = colon[1] != '$' && colon[1] != '{';
            is_fine = error_set(
                error,
                "line %zu of htpasswd, user \"%.*s\": found a password in the scheme %.*s, "
                "expected bcrypt ($2y$), SHA-crypt ($5$, $6$), apr1, $1$, {SHA}, {SSHA} or "
                "plain text; write %s before a plain text that looks like it",
                number, user_size, line, is_des ? 3 : (int)(scheme < 32 ? scheme : 32),
                is_des ? "DES" : colon + 1, plain);
        }
        secret_free(line);
        text = rest;
    }
    return is_fine;
}

struct htpasswd *htpasswd_create(struct error *error)
{
    if (!dynlib_load(&libcrypt)) {
        error_set(error, "passwords need %s, which cannot be loaded; install the package libcrypt1",
                  libcrypt.name);
        return NULL;
    }
    return digest_prepare(error) ? mem_zalloc(sizeof(struct htpasswd)) : NULL;
}

void htpasswd_clear(struct htpasswd *htpasswd)
{
    for (size_t i = 0; i < htpasswd->count; i++) {
        mem_free(htpasswd->entries[i].user);
        secret_free(htpasswd->entries[i].stored);
    }
    mem_free(htpasswd->entries);
    hash_table_clear(&htpasswd->places);
    *htpasswd = (struct htpasswd){.count = 0};
}

void htpasswd_destroy(struct htpasswd *htpasswd)
{
    if (htpasswd == NULL)
        return;
    htpasswd_clear(htpasswd);
    mem_free(htpasswd);
}

static uint64_t hash_of(const char *user)
{
    return XXH3_64bits_withSeed(user, strlen(user), random_seed());
}

static struct entry *find(const struct htpasswd *htpasswd, const char *user)
{
    uint64_t hash = hash_of(user);
    size_t at = 0;
    const void *place;
    while ((place = hash_table_next(&htpasswd->places, hash, &at)) != NULL) {
        struct entry *entry = &htpasswd->entries[(uintptr_t)place - 1];
        if (strcmp(entry->user, user) == 0)
            return entry;
    }
    return NULL;
}

/* NULL: no memory. */
static struct entry *add_user(struct htpasswd *htpasswd, const char *user)
{
    if (!hash_table_add(&htpasswd->places, hash_of(user), (void *)(htpasswd->count + 1)))
        return NULL;
    if (htpasswd->count == htpasswd->capacity) {
        htpasswd->capacity = 2 * htpasswd->capacity + 16;
        htpasswd->entries =
            mem_resize(htpasswd->entries, htpasswd->capacity * sizeof(*htpasswd->entries));
    }
    struct entry *entry = &htpasswd->entries[htpasswd->count++];
    *entry = (struct entry){.user = mem_copy_text(user)};
    return entry;
}

/* False: malformed, or no memory. Writes to line. */
static bool add_line(struct htpasswd *htpasswd, char *line)
{
    if (line[0] == '\0')
        return true;
    char *stored = strchr(line, ':');
    if (stored == NULL)
        return false;
    *stored++ = '\0';
    /* What has a known prefix but is malformed is no plain text either. */
    matches_fn matches = form_of(stored);
    bool is_broken = false;
    if (matches == matches_apr1) {
        const char *salt = stored + strlen("$apr1$");
        size_t salt_size = strcspn(salt, "$");
        is_broken = salt[salt_size] != '$' || salt_size > APR1_SALT_BYTES_MAX;
    } else if (matches == matches_sha || matches == matches_ssha) {
        size_t size = 0;
        uint8_t *room = mem_alloc(strlen(stored) + 1);
        is_broken = !decode_sha(strchr(stored, '}') + 1, room, &size) ||
                    (matches == matches_sha && size != DIGEST_SHA1_BYTES);
        mem_free(room);
    }
    if (is_broken)
        return false;
    struct entry *entry = find(htpasswd, line);
    if (entry == NULL)
        entry = add_user(htpasswd, line);
    else
        secret_free(entry->stored);
    if (entry == NULL)
        return false;
    entry->stored = mem_copy_text(stored);
    entry->matches = matches;
    return true;
}

size_t htpasswd_add(struct htpasswd *htpasswd, struct slice text)
{
    size_t broken = 0;
    while (text.size > 0) {
        struct slice rest;
        char *line = take_line(text, &rest);
        size_t size = strlen(line);
        broken += !add_line(htpasswd, line);
        explicit_bzero(line, size);
        mem_free(line);
        text = rest;
    }
    return broken;
}

size_t htpasswd_users(const struct htpasswd *htpasswd)
{
    return htpasswd->count;
}

/* The entry to compare with; for an unknown user the first one, for its time. NULL: no users. */
static const struct entry *entry_for(const struct htpasswd *htpasswd, const char *user,
                                     bool *ret_is_known)
{
    const struct entry *entry = find(htpasswd, user);
    *ret_is_known = entry != NULL;
    if (entry == NULL && htpasswd->count > 0)
        entry = &htpasswd->entries[0];
    return entry;
}

bool htpasswd_matches(const struct htpasswd *htpasswd, const char *user, const char *password)
{
    bool is_known;
    const struct entry *entry = entry_for(htpasswd, user, &is_known);
    return entry != NULL && entry->matches(entry, password) && is_known;
}

struct htpasswd_trial {
    struct entry entry;
    char *password;
    bool is_known;
};

struct htpasswd_trial *htpasswd_trial_create(const struct htpasswd *htpasswd, const char *user,
                                             const char *password)
{
    bool is_known;
    const struct entry *entry = entry_for(htpasswd, user, &is_known);
    if (entry == NULL || (entry->matches != matches_crypt && entry->matches != matches_apr1))
        return NULL;
    struct htpasswd_trial *trial = mem_zalloc(sizeof(*trial));
    trial->entry =
        (struct entry){.stored = mem_copy_text(entry->stored), .matches = entry->matches};
    trial->password = mem_copy_text(password);
    trial->is_known = is_known;
    return trial;
}

bool htpasswd_trial_run(const struct htpasswd_trial *trial)
{
    return trial->entry.matches(&trial->entry, trial->password) && trial->is_known;
}

uint64_t htpasswd_trial_ns(const struct htpasswd_trial *trial)
{
    unsigned long cost = bcrypt_above(trial->entry.stored, 0);
    unsigned long rounds = rounds_above(trial->entry.stored, 0);
    if (cost > 0)
        return BCRYPT_NS << (cost < BCRYPT_COST_MAX ? cost : BCRYPT_COST_MAX);
    return (rounds > 0 ? rounds : ROUNDS_DEFAULT) * ROUND_NS;
}

void htpasswd_trial_destroy(struct htpasswd_trial *trial)
{
    if (trial == NULL)
        return;
    secret_free(trial->entry.stored);
    secret_free(trial->password);
    mem_free(trial);
}

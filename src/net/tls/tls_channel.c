/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL between two byte queues. A BIO of our own reads the fed ciphertext without a copy, and
 * appends ciphertext to the output, which is freed whenever it is empty. On the lane of its
 * context. */
#include "src/net/tls/tls_channel.h"

#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/net/tls/tls_context.h"
#include "src/net/tls/tls_library.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 5, ERROR_BYTES_MAX = 256, PROTOCOL_BYTES_MAX = 16, OUTPUT_BYTES_MIN = 1024 };

struct tls_channel {
    const struct tls_library *library;
    SSL *ssl;
    bool is_server;
    bool is_open;
    bool is_ended;   /* close_notify is written */
    ptrdiff_t state; /* 0, TLS_CLOSED or TLS_FAILED */
    uint8_t head[HEAD_BYTES];
    uint8_t head_size;
    struct slice fed;
    uint8_t *kept; /* our copy of what fed points to; NULL: fed is borrowed */
    size_t kept_size;
    uint8_t *output;
    size_t output_begin;
    size_t output_size; /* from output_begin */
    size_t output_capacity;
    size_t replies;        /* bytes written by reads since the output was empty */
    size_t idle_bytes;     /* of ciphertext since the last plaintext */
    unsigned idle_records; /* of this turn */
    bool is_reading;
    bool is_flooded; /* there were too many replies */
    char protocol[PROTOCOL_BYTES_MAX];
    char error[ERROR_BYTES_MAX];
};

static BIO_METHOD *method; /* one per process, made with the first channel */
static pthread_once_t method_once = PTHREAD_ONCE_INIT;
static const struct tls_library *method_library;

static int on_bio_read(BIO *bio, char *room, int size)
{
    const struct tls_library *library = method_library;
    struct tls_channel *channel = library->BIO_get_data(bio);
    assert(size >= 0);
    library->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (channel->fed.size == 0) {
        library->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    size_t count = (size_t)size < channel->fed.size ? (size_t)size : channel->fed.size;
    memcpy(room, channel->fed.data, count);
    channel->fed.data += count;
    channel->fed.size -= count;
    return (int)count;
}

static int on_bio_write(BIO *bio, const char *data, int size)
{
    struct tls_channel *channel = method_library->BIO_get_data(bio);
    size_t count = (size_t)size;
    assert(size >= 0);
    if (channel->is_reading)
        channel->replies += count;
    channel->is_flooded = channel->replies > (channel->is_open ? (size_t)TLS_REPLIES_BYTES_MAX
                                                               : (size_t)TLS_FLIGHT_BYTES_MAX);
    if (channel->is_flooded)
        return -1;
    size_t end = channel->output_begin + channel->output_size;
    assert(end <= channel->output_capacity);
    if (channel->output_capacity - end < count) {
        /* Makes room: what waits moves to the front, and the buffer grows. */
        if (channel->output_begin > 0)
            memmove(channel->output, channel->output + channel->output_begin, channel->output_size);
        channel->output_begin = 0;
        end = channel->output_size;
        size_t capacity =
            channel->output_capacity == 0 ? OUTPUT_BYTES_MIN : channel->output_capacity;
        while (capacity - end < count)
            capacity *= 2;
        if (capacity != channel->output_capacity) {
            uint8_t *output = mem_try_resize(channel->output, capacity);
            if (output == NULL)
                return -1;
            channel->output = output;
            channel->output_capacity = capacity;
        }
    }
    memcpy(channel->output + end, data, count);
    channel->output_size += count;
    return size;
}

static long on_bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
    struct error ignored;
    const struct tls_library *library = tls_library_load(&ignored);
    method = library->BIO_meth_new(library->BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
    method_library = library;
    if (method == NULL)
        return;
    library->BIO_meth_set_read(method, on_bio_read);
    library->BIO_meth_set_write(method, on_bio_write);
    library->BIO_meth_set_ctrl(method, on_bio_ctrl);
}

static ptrdiff_t fail_because(struct tls_channel *channel, const char *reason)
{
    assert(channel->state != TLS_FAILED);
    snprintf(channel->error, ERROR_BYTES_MAX, "%s", reason);
    channel->state = TLS_FAILED;
    return TLS_FAILED;
}

/* Stores OpenSSL's reason; an alert by it stays in the output. */
static ptrdiff_t fail(struct tls_channel *channel)
{
    const struct tls_library *library = channel->library;
    long verified = library->SSL_get_verify_result(channel->ssl);
    const char *reason = library->ERR_reason_error_string(library->ERR_peek_error());
    assert(channel->state != TLS_FAILED);
    if (channel->is_flooded)
        reason = "the peer does not read our responses";
    else if (reason == NULL)
        reason = "unknown error";
    if (verified == X509_V_OK)
        snprintf(channel->error, ERROR_BYTES_MAX, "%s", reason);
    else
        snprintf(channel->error, ERROR_BYTES_MAX, "the certificate of the %s is refused: %s",
                 channel->is_server ? "client" : "server",
                 library->X509_verify_cert_error_string(verified));
    library->ERR_clear_error();
    channel->state = TLS_FAILED;
    return TLS_FAILED;
}

/* The result of a call of OpenSSL that returned no bytes. */
static ptrdiff_t result_of(struct tls_channel *channel, int result)
{
    int code = channel->library->SSL_get_error(channel->ssl, result);
    assert(result <= 0);
    if (code == SSL_ERROR_WANT_READ)
        return 0;
    if (code != SSL_ERROR_ZERO_RETURN)
        return fail(channel);
    channel->state = TLS_CLOSED;
    return TLS_CLOSED;
}

/* 0: the handshake is complete, or needs more ciphertext. */
static ptrdiff_t handshake(struct tls_channel *channel)
{
    assert(!channel->is_open);
    channel->library->ERR_clear_error();
    int result = channel->library->SSL_do_handshake(channel->ssl);
    if (result <= 0)
        return result_of(channel, result);
    const unsigned char *name = NULL;
    unsigned size = 0;
    channel->library->SSL_get0_alpn_selected(channel->ssl, &name, &size);
    /* OpenSSL does not compare a server's choice with what was offered (RFC 7301 §3.2). */
    if (size >= PROTOCOL_BYTES_MAX || (size > 0 && memchr(name, '\0', size) != NULL))
        return fail_because(channel, "the peer chose a protocol (ALPN) that is not known");
    if (size > 0)
        memcpy(channel->protocol, name, size);
    channel->is_open = true;
    channel->replies = 0;
    return 0;
}

static bool start(struct tls_channel *channel, struct tls_context *context, const char *server_name)
{
    const struct tls_library *library = channel->library;
    channel->ssl = tls_context_connection(context, server_name);
    BIO *bio = channel->ssl == NULL || method == NULL ? NULL : library->BIO_new(method);
    if (bio == NULL)
        return false;
    library->BIO_set_data(bio, channel);
    library->BIO_set_init(bio, 1);
    library->SSL_set_bio(channel->ssl, bio, bio);
    if (channel->is_server) {
        library->SSL_set_accept_state(channel->ssl);
        return true;
    }
    library->SSL_set_connect_state(channel->ssl);
    return handshake(channel) == 0;
}

struct tls_channel *tls_channel_create(struct tls_context *context, const char *server_name,
                                       struct error *error)
{
    pthread_once(&method_once, make_method);
    struct tls_channel *channel = mem_zalloc(sizeof(*channel));
    channel->library = method_library;
    channel->is_server = server_name == NULL;
    if (start(channel, context, server_name))
        return channel;
    error_set(error, "TLS cannot start: %s",
              channel->error[0] == '\0' ? "out of memory" : channel->error);
    channel->library->ERR_clear_error();
    tls_channel_destroy(channel);
    return NULL;
}

void tls_channel_destroy(struct tls_channel *channel)
{
    if (channel == NULL)
        return;
    channel->library->SSL_free(channel->ssl);
    mem_free(channel->kept);
    mem_free(channel->output);
    mem_free(channel);
}

void tls_channel_feed(struct tls_channel *channel, struct slice ciphertext)
{
    assert(ciphertext.data != NULL || ciphertext.size == 0);
    size_t room = HEAD_BYTES - (size_t)channel->head_size;
    size_t count = ciphertext.size < room ? ciphertext.size : room;
    assert(count <= HEAD_BYTES);
    if (count != 0) {
        memcpy(channel->head + channel->head_size, ciphertext.data, count);
        channel->head_size = (uint8_t)(channel->head_size + count);
    }
    if (channel->fed.size > 0) {
        /* Appends to the kept bytes. */
        size_t size = channel->fed.size + ciphertext.size;
        uint8_t *longer = mem_alloc(size);
        memcpy(longer, channel->fed.data, channel->fed.size);
        memcpy(longer + channel->fed.size, ciphertext.data, ciphertext.size);
        mem_free(channel->kept);
        channel->kept = longer;
        channel->kept_size = size;
        channel->fed = (struct slice){.data = longer, .size = size};
        return;
    }
    channel->fed = ciphertext;
}

/* Plaintext of an open channel, past records without any. A peer may send such records without end
 * for a few bytes each, and none has reason to. */
static ptrdiff_t read_plaintext(struct tls_channel *channel, void *room, int size)
{
    assert(channel->is_open);
    while (channel->idle_records < TLS_IDLE_RECORDS_PER_TURN) {
        const size_t before = channel->fed.size;
        channel->library->ERR_clear_error();
        int count = channel->library->SSL_read(channel->ssl, room, size);
        if (count > 0) {
            channel->idle_bytes = 0;
            return count;
        }
        ptrdiff_t result = result_of(channel, count);
        if (result != 0)
            return result;
        channel->idle_bytes += before - channel->fed.size;
        if (channel->idle_bytes > TLS_IDLE_BYTES_MAX)
            return fail_because(channel, "the peer sends too many records without data");
        if (channel->fed.size == 0)
            return 0;
        channel->idle_records++;
    }
    return 0;
}

ptrdiff_t tls_channel_read(struct tls_channel *channel, void *room, size_t size)
{
    assert(size > 0);
    ptrdiff_t result = channel->state;
    if (result != 0)
        return result;
    channel->is_reading = true;
    if (!channel->is_open)
        result = handshake(channel);
    if (result == 0 && channel->is_open)
        result = read_plaintext(channel, room, (int)(size > INT_MAX ? INT_MAX : size));
    channel->is_reading = false;
    return result;
}

bool tls_channel_keep(struct tls_channel *channel)
{
    channel->idle_records = 0;
    if (channel->fed.size > 0 && channel->kept == NULL) {
        channel->kept = mem_try_alloc(channel->fed.size);
        if (channel->kept == NULL)
            return false;
        memcpy(channel->kept, channel->fed.data, channel->fed.size);
        channel->fed.data = channel->kept;
        channel->kept_size = channel->fed.size;
    }
    if (channel->fed.size > 0)
        return true;
    channel->fed = (struct slice){.data = NULL};
    mem_free(channel->kept);
    channel->kept = NULL;
    channel->kept_size = 0;
    return true;
}

size_t tls_channel_kept(const struct tls_channel *channel)
{
    assert((channel->kept == NULL) == (channel->kept_size == 0));
    return channel->kept_size;
}

bool tls_channel_has_input(const struct tls_channel *channel)
{
    return channel->state == 0 &&
           (channel->fed.size > 0 || channel->library->SSL_pending(channel->ssl) > 0);
}

bool tls_channel_write(struct tls_channel *channel, struct slice plaintext)
{
    assert(channel->is_open);
    if (channel->is_ended || channel->state == TLS_FAILED)
        return false;
    while (plaintext.size > 0) {
        channel->library->ERR_clear_error();
        int size = (int)(plaintext.size > INT_MAX ? INT_MAX : plaintext.size);
        int count = channel->library->SSL_write(channel->ssl, plaintext.data, size);
        if (count <= 0) {
            fail(channel);
            return false;
        }
        plaintext.data += count;
        plaintext.size -= (size_t)count;
    }
    return true;
}

struct slice tls_channel_output(const struct tls_channel *channel)
{
    assert(channel->output_begin + channel->output_size <= channel->output_capacity);
    return channel->output_size == 0
               ? (struct slice){.data = NULL}
               : (struct slice){.data = channel->output + channel->output_begin,
                                .size = channel->output_size};
}

void tls_channel_sent(struct tls_channel *channel, size_t size)
{
    assert(size <= channel->output_size);
    channel->output_begin += size;
    channel->output_size -= size;
    if (channel->output_size > 0)
        return;
    mem_free(channel->output);
    channel->output = NULL;
    channel->output_begin = 0;
    channel->output_capacity = 0;
    channel->replies = 0;
}

void tls_channel_end(struct tls_channel *channel)
{
    if (!channel->is_open || channel->is_ended || channel->state == TLS_FAILED)
        return;
    channel->is_ended = true;
    channel->library->ERR_clear_error();
    channel->library->SSL_shutdown(channel->ssl);
    channel->library->ERR_clear_error();
}

bool tls_channel_is_open(const struct tls_channel *channel)
{
    return channel->is_open;
}

const char *tls_channel_protocol(const struct tls_channel *channel)
{
    assert(channel->is_open);
    return channel->protocol;
}

const char *tls_channel_error(const struct tls_channel *channel)
{
    assert(channel->state == TLS_FAILED);
    return channel->error;
}

/* As Go recognises them. */
bool tls_channel_met_http(const struct tls_channel *channel)
{
    static const char heads[][HEAD_BYTES + 1] = {"GET /", "HEAD ", "POST ", "PUT /", "OPTIO"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (channel->head_size == HEAD_BYTES && memcmp(channel->head, heads[i], HEAD_BYTES) == 0)
            return channel->state == TLS_FAILED && !channel->is_open;
    return false;
}

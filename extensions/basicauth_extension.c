/* SPDX-License-Identifier: Apache-2.0 */
/* basicauth (RFC 7617): servers check users against htpasswd lines, clients send a name and a
 * password. Files are read again when they change. Each component that uses the extension has an
 * instance of its own, on its lane. */
#include "extensions/auth_cache.h"
#include "extensions/htpasswd.h"
#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/base/watched_file.h"
#include "src/config/field.h"
#include "src/core/component.h"
#include "src/listen/authenticator.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct basicauth_htpasswd_config {
    const char *file;
    const char *inline_text;
};

struct basicauth_client_config {
    const char *username;
    const char *username_file;
    const char *password;
    const char *password_file;
};

struct basicauth_extension_config {
    bool has_htpasswd;
    bool has_client;
    struct basicauth_htpasswd_config htpasswd;
    struct basicauth_client_config client;
};

static const struct config_field basicauth_htpasswd_fields[] = {
    CONFIG_TEXT(struct basicauth_htpasswd_config, file, "file", NULL,
                "htpasswd file, read again within a second after it changes."),
    CONFIG_SECRET(struct basicauth_htpasswd_config, inline_text, "inline",
                  "Lines of such a file; they win over those in the file."),
    CONFIG_END,
};

static const struct config_field basicauth_client_fields[] = {
    CONFIG_TEXT(struct basicauth_client_config, username, "username", NULL, "The user's name."),
    CONFIG_TEXT(struct basicauth_client_config, username_file, "username_file", NULL,
                "File that holds it instead, read again within a second after it changes."),
    CONFIG_SECRET(struct basicauth_client_config, password, "password", "The user's password."),
    CONFIG_TEXT(struct basicauth_client_config, password_file, "password_file", NULL,
                "File that holds it instead, read again within a second after it changes."),
    CONFIG_END,
};

#define OWNER struct basicauth_extension_config
static const struct config_field basicauth_extension_fields[] = {
    CONFIG_OPTIONAL(OWNER, htpasswd, struct basicauth_htpasswd_config, has_htpasswd,
                    CONFIG_NULL_IS_OFF, "htpasswd", basicauth_htpasswd_fields, NULL,
                    "For receivers: the users. bcrypt, SHA-crypt, apr1, {SHA}, {SSHA}, plain."),
    CONFIG_OPTIONAL(OWNER, client, struct basicauth_client_config, has_client, CONFIG_NULL_IS_OFF,
                    "client_auth", basicauth_client_fields, NULL,
                    "For exporters: our name and password."),
    CONFIG_END,
};
#undef OWNER

struct waiter_list {
    struct auth_waiter *first;
    struct auth_waiter **last;
};

/* A check on the lane's helper, and who waits for it. */
struct basicauth_trial {
    struct helper_work work; /* first */
    struct basicauth *owner;
    struct htpasswd_trial *trial;
    char *raw;        /* the credentials */
    uint64_t loading; /* of the owner, when it began */
    uint64_t expected_ns;
    uint64_t took_ns;
    bool is_right;
    struct waiter_list waiters;
    struct basicauth_trial *next; /* of the owner */
};

struct basicauth {
    struct authenticator base;
    struct lane *lane;
    struct htpasswd *htpasswd; /* servers; NULL: for a client */
    struct auth_cache *cache;
    uint64_t loading; /* how often the users were read */
    struct basicauth_trial *trials;
    unsigned trials_count;
    uint64_t expected_ns;    /* by all trials */
    uint64_t took_ns;        /* by the last one */
    struct waiter_list told; /* their verdict is known: they are to ask again */
    struct lane_job tell_job;
    struct watched_file file;
    char *raw;     /* of the last request: the text after "Basic " */
    char *decoded; /* user and password, each NUL-terminated */
    struct watched_file username_file;
    struct watched_file password_file;
    char *value; /* clients: the header's value */
};

static struct basicauth *basicauth_of(struct authenticator *base)
{
    return (struct basicauth *)base;
}

static bool basicauth_extension_check(const void *section, struct error *error)
{
    const struct basicauth_extension_config *config = section;
    if (config->has_htpasswd && config->has_client)
        return error_set(error, "only one of `htpasswd` or `client_auth` can be specified") ||
               error_at(error, "client_auth");
    bool has_source =
        config->has_client || (config->has_htpasswd && (config->htpasswd.file[0] != '\0' ||
                                                        config->htpasswd.inline_text[0] != '\0'));
    if (!has_source)
        return error_set(error, "no credential source provided: expected htpasswd with file or "
                                "inline, or client_auth");
    if (!htpasswd_check(slice_of_text(config->htpasswd.inline_text), error))
        return error_at(error, "inline") || error_at(error, "htpasswd");
    if (strchr(config->client.username, ':') != NULL)
        return error_set(error, "a username cannot contain a colon (RFC 7617)") ||
               error_at(error, "username") || error_at(error, "client_auth");
    return true;
}

static void load_users(struct basicauth *self)
{
    const struct basicauth_extension_config *config = self->base.config;
    size_t broken = 0;
    struct error error;
    if (self->file.path != NULL &&
        !htpasswd_check(slice_of(self->file.text, self->file.size), &error)) {
        log_error(self->base.logger,
                  "A credentials file is invalid; the previous credentials stay in use",
                  log_text("filename", self->file.path), log_text("error", error.text));
        return;
    }
    self->loading++;
    htpasswd_clear(self->htpasswd);
    auth_cache_clear(self->cache);
    if (self->file.path != NULL)
        broken = htpasswd_add(self->htpasswd, slice_of(self->file.text, self->file.size));
    broken += htpasswd_add(self->htpasswd, slice_of_text(config->htpasswd.inline_text));
    if (broken > 0)
        log_warn(self->base.logger, "Ignored malformed lines of htpasswd",
                 log_int("lines", (int64_t)broken));
    if (htpasswd_users(self->htpasswd) == 0)
        log_warn(self->base.logger, "htpasswd has no users: all requests are rejected");
}

/* Whether the file has changed and was read again. */
static bool has_changed(const struct basicauth *self, struct watched_file *file)
{
    struct error error;
    if (file->path == NULL)
        return false;
    enum watched_change change = watched_file_look(file, &error);
    if (change == WATCHED_FAILED)
        log_warn(self->base.logger,
                 "A credentials file cannot be read; the previous credentials stay in use",
                 log_text("error", error.text));
    if (change == WATCHED_CHANGED)
        log_info(self->base.logger, "Reloaded a credentials file",
                 log_text("filename", file->path));
    return change == WATCHED_CHANGED;
}

static void await(struct basicauth_trial *trial, const struct auth_request *request)
{
    struct auth_waiter *waiter = request->wait(request);
    waiter->next = NULL;
    *trial->waiters.last = waiter;
    trial->waiters.last = &waiter->next;
}

/* Any number of requests may have waited, each with work to do: the rest takes later turns. */
static void tell(void *arg)
{
    struct basicauth *self = arg;
    uint64_t until_ns = clock_now_ns() + HTTP_TURN_NS;
    while (self->told.first != NULL) {
        struct auth_waiter *waiter = self->told.first;
        self->told.first = waiter->next;
        if (waiter->next == NULL)
            self->told.last = &self->told.first;
        waiter->fn(waiter);
        if (self->told.first == NULL)
            return;
        bool is_over = clock_now_ns() > until_ns;
        if (is_over)
            lane_rest(self->lane);
        if (is_over || lane_is_hurried(self->lane)) {
            lane_defer(self->lane, &self->tell_job);
            return;
        }
    }
}

/* On the helper. */
static void on_help(struct helper_work *work)
{
    struct basicauth_trial *trial = (struct basicauth_trial *)work;
    uint64_t began_ns = clock_now_ns();
    trial->is_right = htpasswd_trial_run(trial->trial);
    trial->took_ns = clock_now_ns() - began_ns;
}

/* Remembers the verdict, unless the passwords have changed meanwhile; those who wait ask again. */
static void on_helped(struct helper_work *work)
{
    struct basicauth_trial *trial = (struct basicauth_trial *)work;
    struct basicauth *self = trial->owner;
    struct basicauth_trial **at = &self->trials;
    struct slice credentials = slice_of_text(trial->raw);
    while (*at != trial)
        at = &(*at)->next;
    *at = trial->next;
    self->trials_count--;
    self->expected_ns -= trial->expected_ns;
    self->took_ns = trial->took_ns;
    auth_cache_spend(self->cache, trial->took_ns);
    if (trial->loading == self->loading)
        auth_cache_add(self->cache, credentials, trial->is_right);
    *self->told.last = trial->waiters.first;
    self->told.last = trial->waiters.last;
    htpasswd_trial_destroy(trial->trial);
    secret_free(trial->raw);
    mem_free(trial);
    lane_defer(self->lane, &self->tell_job);
}

/* The check of these credentials that is under way. NULL: there is none. */
static struct basicauth_trial *find_trial(const struct basicauth *self, struct slice credentials)
{
    struct basicauth_trial *trial = self->trials;
    while (trial != NULL && (trial->loading != self->loading ||
                             !secret_equal(slice_of_text(trial->raw), credentials)))
        trial = trial->next;
    return trial;
}

/* Hashes that take long are compared on the lane's helper. */
static enum auth_verdict check(struct basicauth *self, const struct auth_request *request,
                               const char *user, const char *password)
{
    struct slice credentials = slice_of_text(self->raw);
    enum auth_cached memory = auth_cache_find(self->cache, credentials);
    if (memory != AUTH_UNKNOWN)
        return memory == AUTH_WAS_RIGHT ? AUTH_GRANTED : AUTH_DENIED;
    struct basicauth_trial *trial = find_trial(self, credentials);
    if (trial != NULL && request->wait != NULL) {
        await(trial, request);
        return AUTH_PENDING;
    }
    if (!auth_cache_may_check(self->cache, self->expected_ns) ||
        self->trials_count == AUTH_PENDING_MAX)
        return AUTH_BUSY;
    struct htpasswd_trial *slow =
        request->wait != NULL ? htpasswd_trial_create(self->htpasswd, user, password) : NULL;
    if (slow != NULL) {
        trial = mem_zalloc(sizeof(*trial));
        trial->work = (struct helper_work){.run = on_help, .done = on_helped};
        trial->owner = self;
        trial->trial = slow;
        trial->raw = mem_copy_text(self->raw);
        trial->loading = self->loading;
        /* The machine may be slower than usual. */
        trial->expected_ns = htpasswd_trial_ns(slow);
        if (trial->expected_ns < self->took_ns)
            trial->expected_ns = self->took_ns;
        self->expected_ns += trial->expected_ns;
        trial->waiters.last = &trial->waiters.first;
        trial->next = self->trials;
        self->trials = trial;
        self->trials_count++;
        await(trial, request);
        lane_help(self->lane, &trial->work);
        return AUTH_PENDING;
    }
    uint64_t began_ns = clock_now_ns();
    bool is_right = htpasswd_matches(self->htpasswd, user, password);
    auth_cache_spend(self->cache, clock_now_ns() - began_ns);
    auth_cache_add(self->cache, credentials, is_right);
    return is_right ? AUTH_GRANTED : AUTH_DENIED;
}

static enum auth_verdict basicauth_authenticate(struct authenticator *base,
                                                const struct auth_request *request,
                                                struct auth_result *ret_result)
{
    static const char prefix[] = "Basic ";
    const size_t prefix_bytes = sizeof(prefix) - 1;
    struct basicauth *self = basicauth_of(base);
    struct slice header = request->header(request, "authorization");
    if (has_changed(self, &self->file))
        load_users(self);
    ret_result->reason =
        header.size == 0 ? "no basic auth provided" : "invalid authorization scheme prefix";
    if (header.size < prefix_bytes ||
        strncasecmp((const char *)header.data, prefix, prefix_bytes) != 0)
        return AUTH_DENIED;

    /* base64 of "user:password". */
    size_t size = header.size - prefix_bytes;
    size_t decoded = 0;
    secret_free(self->raw);
    secret_free(self->decoded);
    self->raw = mem_alloc(size + 1);
    self->decoded = mem_zalloc(size + 1);
    memcpy(self->raw, header.data + prefix_bytes, size);
    self->raw[size] = '\0';
    ret_result->reason = "invalid authorization format";
    if (!base64_decode(slice_of(self->raw, size), (uint8_t *)self->decoded, &decoded) ||
        memchr(self->decoded, '\0', decoded) != NULL)
        return AUTH_DENIED;
    self->decoded[decoded] = '\0';
    char *password = strchr(self->decoded, ':');
    if (password == NULL)
        return AUTH_DENIED;
    *password++ = '\0';
    enum auth_verdict verdict = check(self, request, self->decoded, password);
    explicit_bzero(password, strlen(password));
    ret_result->reason = verdict == AUTH_BUSY ? "too many passwords to check, try again later"
                                              : "invalid credentials";
    if (verdict != AUTH_GRANTED)
        return verdict;
    ret_result->attributes_count = 2;
    ret_result->attributes[0] = (struct auth_attribute){"username", self->decoded};
    ret_result->attributes[1] = (struct auth_attribute){"raw", self->raw};
    return AUTH_GRANTED;
}

/* The file's content without surrounding white space, or the text from the configuration. */
static struct slice resolve(const struct watched_file *file, const char *text)
{
    return file->path == NULL ? slice_of_text(text) : slice_trim(slice_of(file->text, file->size));
}

static bool is_blank(const struct watched_file *file)
{
    return file->path != NULL && slice_trim(slice_of(file->text, file->size)).size == 0;
}

static void make_value(struct basicauth *self)
{
    static const char prefix[] = "Basic ";
    const struct basicauth_extension_config *config = self->base.config;
    struct slice user = resolve(&self->username_file, config->client.username);
    struct slice password = resolve(&self->password_file, config->client.password);
    size_t size = user.size + 1 + password.size;
    char *plain = mem_alloc(size + 1);
    snprintf(plain, size + 1, "%.*s:%.*s", (int)user.size, (const char *)user.data,
             (int)password.size, (const char *)password.data);
    secret_free(self->value);
    size_t digits = base64_size(size);
    self->value = mem_alloc(strlen(prefix) + digits + 1);
    memcpy(self->value, prefix, strlen(prefix));
    base64_encode(slice_of(plain, size), self->value + strlen(prefix));
    self->value[strlen(prefix) + digits] = '\0';
    explicit_bzero(plain, size);
    mem_free(plain);
}

static struct auth_header basicauth_credentials(struct authenticator *base)
{
    struct basicauth *self = basicauth_of(base);
    bool is_new = has_changed(self, &self->username_file);
    is_new |= has_changed(self, &self->password_file);
    /* A file that is replaced in place is empty for a moment. */
    if (is_new && !is_blank(&self->username_file) && !is_blank(&self->password_file))
        make_value(self);
    else if (is_new)
        log_warn(self->base.logger,
                 "A credentials file is empty; the previous credentials stay in use");
    return (struct auth_header){.name = "authorization", .value = self->value};
}

static bool open_file(struct watched_file *file, const char *path, size_t max_bytes,
                      struct error *error)
{
    return path[0] == '\0' || watched_file_open(file, path, max_bytes, error);
}

static bool prepare_server(struct basicauth *self, struct error *error)
{
    const struct basicauth_extension_config *config = self->base.config;
    assert(config->has_htpasswd);
    self->htpasswd = htpasswd_create(error);
    if (self->htpasswd == NULL)
        return false;
    self->cache = auth_cache_create();
    if (!open_file(&self->file, config->htpasswd.file, HTPASSWD_BYTES_MAX, error))
        return error_prefix(error, "open htpasswd file") || error_at(error, "file") ||
               error_at(error, "htpasswd");
    if (self->file.path != NULL &&
        !htpasswd_check(slice_of(self->file.text, self->file.size), error))
        return error_prefix(error, "%s", self->file.path) || error_at(error, "file") ||
               error_at(error, "htpasswd");
    load_users(self);
    return true;
}

static bool prepare_client(struct basicauth *self, struct error *error)
{
    const struct basicauth_extension_config *config = self->base.config;
    if (!open_file(&self->username_file, config->client.username_file, SECRET_FILE_BYTES_MAX,
                   error))
        return error_at(error, "username_file") || error_at(error, "client_auth");
    if (!open_file(&self->password_file, config->client.password_file, SECRET_FILE_BYTES_MAX,
                   error))
        return error_at(error, "password_file") || error_at(error, "client_auth");
    make_value(self);
    return true;
}

static void basicauth_destroy(struct authenticator *base)
{
    struct basicauth *self = basicauth_of(base);
    assert(self->trials == NULL);
    assert(self->told.first == NULL);
    htpasswd_destroy(self->htpasswd);
    auth_cache_destroy(self->cache);
    watched_file_close(&self->file);
    watched_file_close(&self->username_file);
    watched_file_close(&self->password_file);
    secret_free(self->raw);
    secret_free(self->decoded);
    secret_free(self->value);
    mem_free(self);
}

static struct authenticator *basicauth_create(const void *section, const struct component *user,
                                              struct error *error)
{
    const struct basicauth_extension_config *config = section;
    assert(config->has_htpasswd != config->has_client);
    struct basicauth *self = mem_zalloc(sizeof(*self));
    self->base = (struct authenticator){.config = config, .logger = &user->logger};
    self->lane = user->lane;
    self->told.last = &self->told.first;
    self->tell_job = (struct lane_job){.fn = tell, .arg = self};
    if (config->has_htpasswd ? prepare_server(self, error) : prepare_client(self, error))
        return &self->base;
    basicauth_destroy(&self->base);
    return NULL;
}

static bool basicauth_serves(const void *section, enum auth_side side)
{
    const struct basicauth_extension_config *config = section;
    return side == AUTH_SERVER ? config->has_htpasswd : config->has_client;
}

static const struct authenticator_ops basicauth_ops = {
    .serves = basicauth_serves,
    .needs_tls = true,
    .create = basicauth_create,
    .destroy = basicauth_destroy,
    .authenticate = basicauth_authenticate,
    .credentials = basicauth_credentials,
};

const struct component_factory basicauth_extension_factory = {
    .type = "basicauth",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct basicauth_extension_config),
    .fields = basicauth_extension_fields,
    .check = basicauth_extension_check,
    .authenticator = &basicauth_ops,
};

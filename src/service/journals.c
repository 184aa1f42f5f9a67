/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, starts and stops journals. Main thread. */
#include "src/service/journals.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "src/base/budget.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/log.h"
#include "src/base/mem.h"
#include "src/config/component_set.h"
#include "src/config/shared/exporter_queue_config.h"
#include "src/core/batch.h"
#include "src/journal/journal.h"
#include "src/journal/journal_format.h"
#include "src/journal/journal_progress.h"
#include "src/pipeline/pipeline.h"
#include "src/service/journal_storage.h"
#include "src/service/service_parts.h"

/* Of the memory budget, for what one exporter holds of one journal: this part, or less if there are
 * so many that they would hold more than half of it together. */
enum { GIVEN_PART = 8 };

enum {
    ID_KEPT_BYTES = 900,
    NAME_TAIL_BYTES = 16, /* of a directory's name: "~002F", or "~", a checksum and the end */
    SEGMENTS_MIN = 4,     /* that each journal has room for, if they can be smaller */
    SEGMENT_BYTES_MIN = 1 << 20,
    /* Of a segment with one large record, all else that is in it; each exporter's progress. */
    SEGMENT_REST_BLOCKS = 8,
    EXPORTER_BLOCKS = 3,
};

/* The storage of the first exporter that stores, in the pipeline or else behind its connectors,
 * whose pipelines are known already. */
static const struct config_component *find_storage(struct service *service, size_t index,
                                                   const struct config_component *const *known)
{
    const struct config *config = service->config;
    const struct config_pipeline *pipeline = &config->pipelines[index];
    for (size_t i = 0; i < pipeline->exporters_count; i++) {
        const struct config_component *storage =
            journal_storage_find(service, pipeline->exporters[i]);
        if (storage != NULL)
            return storage;
    }
    for (size_t i = 0; i < config->pipelines_count; i++)
        for (size_t j = 0; known[i] != NULL && j < config->pipelines[i].receivers_count; j++)
            for (size_t k = 0; k < pipeline->exporters_count; k++)
                if (config->pipelines[i].receivers[j] == pipeline->exporters[k])
                    return known[i];
    return NULL;
}

/* Exporters of a pipeline may name different storages, and one journal serves them all: it is as
 * safe as the safest of them asks for. */
static bool is_synced(struct service *service, size_t index, const struct config_component *storage)
{
    const struct config_pipeline *pipeline = &service->config->pipelines[index];
    bool is_synced = journal_storage_of(storage).is_synced;
    for (size_t i = 0; i < pipeline->exporters_count; i++) {
        const struct config_component *other =
            journal_storage_find(service, pipeline->exporters[i]);
        if (other == NULL || other == storage)
            continue;
        is_synced |= journal_storage_of(other).is_synced;
        log_warn(NULL,
                 "Exporters of one pipeline have different storages. Its journal is in that of the "
                 "first, and is flushed to the disk if any of them has fsync.",
                 log_text("pipeline", pipeline->id),
                 log_text("exporter", pipeline->exporters[i]->id), log_text("storage", other->id),
                 log_text("journal_storage", storage->id));
    }
    return is_synced;
}

/* As the journal knows an exporter, or a pipeline behind a connector; owned by the caller.
 * Identifiers have no limit: of a long one, the start and a checksum. */
static char *name_of(const char *connector, const char *id)
{
    char *name = mem_alloc(JOURNAL_EXPORTER_BYTES_MAX + 1);
    const char *parts[] = {connector != NULL ? "connector/" : "",
                           connector != NULL ? connector : "", connector != NULL ? ":" : "", id};
    size_t size = strlen(parts[0]) + strlen(parts[1]) + strlen(parts[2]) + strlen(id);
    char *whole = mem_alloc(size + 1);
    snprintf(whole, size + 1, "%s%s%s%s", parts[0], parts[1], parts[2], parts[3]);
    if (size <= JOURNAL_EXPORTER_BYTES_MAX)
        memcpy(name, whole, size + 1);
    else
        snprintf(name, JOURNAL_EXPORTER_BYTES_MAX + 1, "%.*s~%08" PRIx32, ID_KEPT_BYTES, whole,
                 journal_crc(0, slice_of_text(whole)));
    mem_free(whole);
    return name;
}

/* Fills the names of those that store, in the order of pipeline_set_journal, and how much each may
 * hold. Returns how many there are. */
static size_t name_storing(struct service *service, size_t index, char *names[static STORING_MAX],
                           uint64_t held_max[static STORING_MAX])
{
    const struct config *config = service->config;
    const struct config_pipeline *pipeline = &config->pipelines[index];
    size_t count = 0;
    for (size_t i = 0; i < pipeline->exporters_count; i++)
        if (journal_storage_find(service, pipeline->exporters[i]) != NULL) {
            held_max[count] = exporter_queue_held_max(pipeline->exporters[i]->config);
            names[count++] = name_of(NULL, pipeline->exporters[i]->id);
        }
    for (size_t i = 0; i < pipeline->exporters_count; i++) {
        const struct config_component *connector = pipeline->exporters[i];
        if (connector->factory->kind != CONNECTOR || !connector->factory->passes_on ||
            connector->factory->chooses)
            continue;
        for (size_t j = 0; j < config->pipelines_count; j++) {
            const struct config_pipeline *next = &config->pipelines[j];
            bool is_fed = false;
            for (size_t k = 0; k < next->receivers_count; k++)
                is_fed |= next->receivers[k] == connector;
            if (is_fed && next->signal == pipeline->signal &&
                pipeline_stores(service->lanes[0].pipelines[j])) {
                held_max[count] = 0;
                names[count++] = name_of(connector->id, next->id);
            }
        }
    }
    assert(count > 0 && count <= STORING_MAX); /* the pipeline was built */
    return count;
}

/* Letters, digits, "_", "-" and "." stay; other bytes become "~" and four hexadecimal digits, as in
 * the names of the Go collector's files. A long name ends in a checksum instead. */
static void directory_of(char path[static PATH_MAX], const char *directory, const char *pipeline)
{
    char name[NAME_MAX + 1];
    size_t size = 0;
    const char *next = pipeline;
    for (; *next != '\0' && size + NAME_TAIL_BYTES < sizeof(name); next++)
        size += (size_t)(isalnum((unsigned char)*next) || strchr("_-.", *next) != NULL
                             ? snprintf(name + size, 2, "%c", *next)
                             : snprintf(name + size, 6, "~%04X", (unsigned)(unsigned char)*next));
    if (*next != '\0')
        snprintf(name + size, sizeof(name) - size, "~%08" PRIx32,
                 journal_crc(0, slice_of((const uint8_t *)pipeline, strlen(pipeline))));
    snprintf(path, PATH_MAX, "%s/%s", directory, name);
}

/* A directory that was made just now is only there after a power cut if the one above it was
 * flushed. */
static int flush_entry(const char *directory)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/..", directory) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    int fd = fileops()->open(path, O_RDONLY | O_DIRECTORY, 0);
    int failed = fd < 0 ? fd : fileops()->fsync(fd);
    if (fd >= 0)
        fileops()->close(fd);
    return failed;
}

/* With those above it. */
static int make_directory(const char *directory, mode_t mode, bool is_synced)
{
    char path[PATH_MAX];
    int failed = 0;
    if (directory[0] == '\0')
        return -ENOENT;
    if (snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (char *end = path + 1; failed == 0 || failed == -EEXIST; end++) {
        char last = *end;
        if (last != '\0' && last != '/')
            continue;
        *end = '\0';
        failed = fileops()->mkdir(path, mode);
        if (failed == 0 && is_synced)
            failed = flush_entry(path);
        if (last == '\0')
            break;
        *end = last;
        /* What is there already need not be writable. */
        if (failed == -EROFS || failed == -EACCES)
            failed = 0;
    }
    return failed == -EEXIST ? 0 : failed;
}

/* So that a journal can have several, on a small disk too. */
static uint64_t segment_bytes_for(const struct journal_storage *storage, size_t journals)
{
    uint64_t bytes = JOURNAL_SEGMENT_BYTES;
    struct statfs info;
    uint64_t share = storage->bytes_max / (SEGMENTS_MIN * journals);
    if (statfs(storage->directory, &info) == 0) {
        uint64_t room = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
        share = room / (SEGMENTS_MIN * journals) < share ? room / (SEGMENTS_MIN * journals) : share;
    }
    bytes = share < bytes ? share : bytes;
    bytes = bytes > SEGMENT_BYTES_MIN ? bytes : SEGMENT_BYTES_MIN;
    return bytes / JOURNAL_BLOCK_BYTES * JOURNAL_BLOCK_BYTES;
}

/* What fits into a journal that is empty otherwise. */
static uint64_t request_bytes_max(const struct budget *disk, size_t exporters)
{
    uint64_t most = JOURNAL_PAYLOAD_BYTES_MAX;
    uint64_t limit = budget_limit(disk);
    limit -= (SEGMENT_REST_BLOCKS + exporters * EXPORTER_BLOCKS) * JOURNAL_BLOCK_BYTES;
    return (limit < most ? limit : most) - JOURNAL_META_BYTES_MAX;
}

/* File systems whose fdatasync returns at once, without a disk below. */
static void warn_of_file_system(const char *directory)
{
    static const struct {
        unsigned long type;
        const char *name;
    } rows[] = {{0x01021994, "tmpfs"}, {0x794c7630, "overlay"}};
    struct statfs info;
    if (statfs(directory, &info) != 0)
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((unsigned long)info.f_type == rows[i].type)
            log_warn(NULL,
                     "The directory of the journal does not survive a restart of the container or "
                     "the machine: mount a volume there.",
                     log_text("directory", directory), log_text("file_system", rows[i].name));
}

struct shares {
    size_t journals; /* that share the storage */
    size_t storing;  /* exporters of all journals, each once for every journal */
};

static bool open_journal(struct service *service, size_t index,
                         const struct config_component *component, struct shares shares,
                         struct error *error)
{
    size_t part = 2 * shares.storing > GIVEN_PART ? 2 * shares.storing : GIVEN_PART;
    const struct config_pipeline *pipeline = &service->config->pipelines[index];
    const struct journal_storage storage = journal_storage_of(component);
    struct budget *disk = &service->disks[component_slot(service, component)];
    bool is_flushed = is_synced(service, index, component);
    char directory[PATH_MAX];
    directory_of(directory, storage.directory, pipeline->id);
    if (storage.is_made) {
        int failed = make_directory(storage.directory, storage.mode, is_flushed);
        if (failed != 0)
            return error_set(error, "cannot make the directory %s: %s", storage.directory,
                             strerror(-failed));
    }
    warn_of_file_system(storage.directory);
    char *names[STORING_MAX];
    uint64_t held_max[STORING_MAX];
    size_t count = name_storing(service, index, names, held_max);
    struct journal *journal = journal_create(
        &(struct journal_settings){
            .store = {.directory = directory,
                      .segment_bytes = segment_bytes_for(&storage, shares.journals),
                      .disk = disk,
                      .is_synced = is_flushed,
                      .directory_mode = storage.mode},
            .exporters = (const char *const *)names,
            .exporters_count = count,
            .given_max = held_max,
            .memory = &service->budget,
            .given_bytes_max = budget_limit(&service->budget) / part,
            .entry_bytes = pipeline_entry_bytes(),
            .logger =
                &(struct logger){.component_id = component->id,
                                 .component_kind = component_kind_name(component->factory->kind),
                                 .pipeline_id = pipeline->id},
        },
        error);
    for (size_t i = 0; i < count; i++)
        mem_free(names[i]);
    if (journal == NULL)
        return error_prefix(error, "cannot open the journal of pipeline \"%s\"", pipeline->id);
    service->journals[index] = journal;
    for (unsigned lane = 0; lane < service->lanes_count; lane++)
        pipeline_set_journal(service->lanes[lane].pipelines[index], journal,
                             request_bytes_max(disk, count));
    log_info(NULL,
             is_flushed ? "Requests survive a power cut once they are acknowledged."
                        : "Requests survive the end of the process once they are "
                          "acknowledged; for power cuts set fsync of file_storage.",
             log_text("pipeline", pipeline->id), log_text("directory", directory));
    return true;
}

struct search {
    struct service *service;
    const struct config_component *storage;
    char queue[PATH_MAX]; /* a queue or log of the Go collector */
    size_t queues;        /* how many there are */
};

static void note_segment(const char *name, void *arg)
{
    uint64_t number;
    bool *has_segment = arg;
    *has_segment |= journal_segment_number(name, &number);
}

/* By the file itself: the same directory may be named in several ways, and another one may have had
 * the journal of that pipeline before. */
static bool is_used(const struct service *service, const char *path)
{
    struct stat found;
    struct stat used;
    if (fileops()->stat(path, &found) != 0)
        return false;
    for (size_t i = 0; i < service->config->pipelines_count; i++)
        if (service->journals[i] != NULL &&
            fileops()->stat(journal_directory(service->journals[i]), &used) == 0 &&
            used.st_dev == found.st_dev && used.st_ino == found.st_ino)
            return true;
    return false;
}

/* Two extensions may have one directory. */
static bool is_noted(const struct service *service, const char *path)
{
    struct stat found;
    struct stat noted;
    if (fileops()->stat(path, &found) != 0)
        return false;
    for (size_t i = 0; i < service->unused_count; i++)
        if (fileops()->stat(service->unused[i].directory, &noted) == 0 &&
            noted.st_dev == found.st_dev && noted.st_ino == found.st_ino)
            return true;
    return false;
}

/* Whether it is a queue that an exporter of the Go collector has left: a bbolt database, whose
 * first page begins with 16 bytes of its own, then the magic number. */
static bool is_queue(const char *name, const char *path)
{
    enum { MAGIC_AT = 16 };
    static const uint8_t magic[] = {0xED, 0xDA, 0x0C, 0xED};
    uint8_t found[sizeof(magic)];
    struct stat info;
    if (strncmp(name, "exporter_", strlen("exporter_")) != 0 || fileops()->stat(path, &info) != 0 ||
        !S_ISREG(info.st_mode))
        return false;
    int fd = fileops()->open(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t size = fileops()->pread(fd, found, sizeof(found), MAGIC_AT);
    fileops()->close(fd);
    return size == (ssize_t)sizeof(found) && memcmp(found, magic, sizeof(magic)) == 0;
}

static void note_log(const char *name, void *arg)
{
    enum { DIGITS = 20 };
    bool *has_log = arg;
    *has_log |= strspn(name, "0123456789") == DIGITS && name[DIGITS] == '\0';
}

/* Whether it is the directory of a log that prometheus_remote_write of the Go collector has left:
 * its files are named by numbers. */
static bool is_log(const char *name, const char *path)
{
    bool has_log = false;
    return strcmp(name, "prom_remotewrite") == 0 &&
           fileops()->list(path, note_log, &has_log) == 0 && has_log;
}

/* An entry of the directory of a storage. */
static void look_at(const char *name, void *arg)
{
    struct search *search = arg;
    struct service *service = search->service;
    const struct journal_storage storage = journal_storage_of(search->storage);
    char path[PATH_MAX];
    bool has_segment = false;
    struct error error = {.text = ""};
    struct budget disk; /* it does not count as part of max_size */
    if (snprintf(path, sizeof(path), "%s/%s", storage.directory, name) >= (int)sizeof(path))
        return;
    if (is_queue(name, path) || is_log(name, path)) {
        memcpy(search->queue, path, sizeof(path));
        search->queues++;
        return;
    }
    if (is_used(service, path) || is_noted(service, path) ||
        fileops()->list(path, note_segment, &has_segment) != 0 || !has_segment)
        return;
    budget_init(&disk, UINT64_MAX);
    struct journal_store *store =
        journal_store_open(&(struct journal_store_settings){.directory = path,
                                                            .segment_bytes = JOURNAL_SEGMENT_BYTES,
                                                            .disk = &disk,
                                                            .is_read_only = true},
                           &error);
    struct journal_figures figures = {.bytes = 0};
    if (store != NULL)
        figures = journal_store_figures(store);
    else
        log_warn(NULL,
                 "There is a journal that no pipeline uses and that cannot be read. \"spanflame "
                 "journal verify\" says more of it.",
                 log_text("directory", path), log_text("error", error.text));
    journal_store_close(store);
    budget_fini(&disk);
    if (figures.low_id >= figures.next_id)
        return;
    struct unused_journal unused = {.directory = mem_copy_text(path),
                                    .storage = search->storage,
                                    .records = figures.next_id - figures.low_id,
                                    .bytes = figures.bytes};
    service->unused =
        mem_resize(service->unused, (service->unused_count + 1) * sizeof(service->unused[0]));
    service->unused[service->unused_count++] = unused;
    log_warn(NULL,
             "Requests wait in a journal that no pipeline uses: its pipeline has another name, "
             "another storage, or none any more, or is gone. They stay there, beside max_size, "
             "until that is put back. \"spanflame journal export\" prints them; to drop them, "
             "delete the directory.",
             log_text("directory", path), log_int("requests", (int64_t)unused.records),
             log_int("bytes", (int64_t)unused.bytes));
}

static void look_into(struct service *service, const struct config_component *component)
{
    struct search search = {.service = service, .storage = component};
    const struct journal_storage storage = journal_storage_of(component);
    fileops()->list(storage.directory, look_at, &search);
    if (search.queues > 0)
        log_warn(NULL,
                 "The directory of the journals holds queues of the Go collector, which "
                 "spanflame does not read. Requests may wait in them: let the Go collector "
                 "deliver them, and then delete the files.",
                 log_text("directory", storage.directory), log_text("file", search.queue),
                 log_int("files", (int64_t)search.queues));
}

static void warn_of_unused(struct service *service)
{
    const struct config *config = service->config;
    for (size_t i = 0; i < config->extensions_count; i++)
        if (strcmp(config->extensions[i]->factory->type, "file_storage") == 0)
            look_into(service, config->extensions[i]);
    for (size_t i = 0; i < config->pipelines_count; i++) {
        bool is_new =
            service->storages[i] != NULL && service->storages[i]->factory->kind == EXPORTER;
        for (size_t j = 0; j < i; j++)
            is_new &= service->storages[j] != service->storages[i];
        if (is_new)
            look_into(service, service->storages[i]);
    }
}

bool journals_start(struct service *service, struct error *error)
{
    const struct config *config = service->config;
    struct shares shares = {.storing = 0};
    const struct config_component **storages = (const struct config_component **)mem_zalloc(
        config->pipelines_count * sizeof(const struct config_component *));
    service->storages = storages;
    /* The pipelines behind connectors come first. */
    for (size_t depth = config->depth + 1; depth > 0; depth--)
        for (size_t i = 0; i < config->pipelines_count; i++) {
            if (config->pipelines[i].depth != depth - 1 ||
                !pipeline_stores(service->lanes[0].pipelines[i]))
                continue;
            storages[i] = find_storage(service, i, storages);
            assert(storages[i] != NULL); /* the configuration was checked */
            shares.storing += pipeline_storing(service->lanes[0].pipelines[i]);
        }
    for (size_t i = 0; i < config->pipelines_count; i++) {
        shares.journals = 0;
        for (size_t j = 0; j < config->pipelines_count; j++)
            shares.journals += storages[j] == storages[i];
        if (storages[i] != NULL && !open_journal(service, i, storages[i], shares, error))
            return false;
    }
    /* What is read back passes connectors: the journals behind them run first. */
    for (size_t depth = config->depth + 1; depth > 0; depth--)
        for (size_t i = 0; i < config->pipelines_count; i++)
            if (config->pipelines[i].depth == depth - 1 && service->journals[i] != NULL &&
                !journal_start(service->journals[i], error))
                return false;
    warn_of_unused(service);
    return true;
}

void journals_pause(struct service *service)
{
    for (size_t i = 0; i < service->config->pipelines_count; i++)
        if (service->journals[i] != NULL)
            journal_pause(service->journals[i]);
}

void journals_stop(struct service *service, bool is_forced)
{
    for (size_t i = 0; i < service->config->pipelines_count; i++) {
        if (service->journals[i] == NULL)
            continue;
        if (is_forced)
            journal_abandon(service->journals[i]);
        else
            journal_stop(service->journals[i]);
    }
}

void journals_destroy(struct service *service)
{
    for (size_t i = 0; service->journals != NULL && i < service->config->pipelines_count; i++)
        journal_destroy(service->journals[i]);
    while (service->unused_count > 0)
        mem_free(service->unused[--service->unused_count].directory);
    mem_free(service->unused);
    mem_free((void *)service->journals);
    mem_free((void *)service->storages);
    service->journals = NULL;
    service->storages = NULL;
    service->unused = NULL;
}

/* Of a storage: until max_size, or the disk, is full. */
static uint64_t room_of(const struct service *service, const struct config_component *component)
{
    const struct journal_storage storage = journal_storage_of(component);
    const struct budget *disk = &service->disks[component_slot(service, component)];
    uint64_t used = budget_used(disk);
    uint64_t limit = budget_limit(disk);
    uint64_t room = limit > used ? limit - used : 0;
    struct statfs info;
    if (statfs(storage.directory, &info) != 0)
        return room;
    uint64_t left = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
    return left < room ? left : room;
}

/* A unit's bytes on the disk, of the requests committed so far, else of those that wait. */
static double unit_bytes(const struct journal_figures *figures, const struct journal_backlog *waits,
                         enum queue_sizer sizer)
{
    bool has_written = figures->written_records > 0;
    uint64_t records = has_written ? figures->written_records : waits->records;
    uint64_t items = has_written ? figures->written.items : waits->amount.items;
    uint64_t units = sizer == QUEUE_ITEMS ? items : records;
    uint64_t bytes = has_written ? figures->written_disk_bytes
                                 : waits->amount.bytes + records * JOURNAL_HEAD_BYTES;
    if (sizer == QUEUE_BYTES)
        return 1;
    return units > 0 && bytes > units ? (double)bytes / (double)units : JOURNAL_BLOCK_BYTES;
}

static double units_of(const struct journal_backlog *waits, enum queue_sizer sizer)
{
    return (double)(sizer == QUEUE_BYTES   ? waits->amount.bytes
                    : sizer == QUEUE_ITEMS ? waits->amount.items
                                           : waits->records);
}

/* What the sending queue holds in memory is not finished either: the journal's figure covers it. */
bool journals_queue(const struct service *service, const struct component *exporter,
                    enum queue_sizer sizer, struct journals_queue *ret_queue)
{
    const struct config *config = service->config;
    bool has_journal = false;
    *ret_queue = (struct journals_queue){0};
    for (size_t i = 0; i < config->pipelines_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        size_t place = 0; /* in the order of name_storing */
        for (size_t j = 0; j < pipeline->exporters_count && service->journals[i] != NULL; j++) {
            if (journal_storage_find(service, pipeline->exporters[j]) == NULL)
                continue;
            if (pipeline->signal == exporter->signal &&
                strcmp(pipeline->exporters[j]->id, exporter->id) == 0) {
                struct journal_backlog waits = journal_backlog_of(service->journals[i], place);
                struct journal_figures figures = journal_figures(service->journals[i]);
                /* The disk is shared: its room counts once. */
                uint64_t room = has_journal ? 0 : room_of(service, service->storages[i]);
                double size = units_of(&waits, sizer);
                double capacity =
                    floor((double)(figures.bytes + room) / unit_bytes(&figures, &waits, sizer));
                ret_queue->size += size;
                ret_queue->capacity += capacity > size ? capacity : size;
                has_journal = true;
            }
            place++;
        }
    }
    return has_journal;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The host as the Go collector's system detector sees it on Linux. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netpacket/packet.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "processors/resource_detection/detector.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"

enum { FILE_BYTES_MAX = 256 * 1024, NAME_BYTES = 256, TEXTS_BYTES = 16384 };

#define SCHEMA_URL "https://opentelemetry.io/schemas/1.40.0"

/* A file, "" when it cannot be read; those of /proc have no size. Free with mem_free. */
static char *read_file(const char *path)
{
    char *text = mem_alloc(FILE_BYTES_MAX + 1);
    size_t size = 0;
    ssize_t got = 0;
    int fd = fileops()->open(path, O_RDONLY, 0);
    while (fd >= 0 && size < FILE_BYTES_MAX &&
           (got = fileops()->read(fd, text + size, FILE_BYTES_MAX - size)) > 0)
        size += (size_t)got;
    if (fd >= 0)
        fileops()->close(fd);
    text[size] = '\0';
    return text;
}

/* The value behind a key at the start of a line, as far as the line goes. */
static struct slice line_value(const char *text, const char *key)
{
    size_t size = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t length = end != NULL ? (size_t)(end - line) : strlen(line);
        if (length >= size && memcmp(line, key, size) == 0)
            return slice_trim(slice_of(line + size, length - size));
        line = end != NULL ? end + 1 : NULL;
    }
    return slice_of(NULL, 0);
}

static struct slice unquote(struct slice text)
{
    bool is_quoted = text.size >= 2 && (text.data[0] == '"' || text.data[0] == '\'') &&
                     text.data[text.size - 1] == text.data[0];
    return is_quoted ? slice_of(text.data + 1, text.size - 2) : text;
}

/* Of os-release(5), "" when it is not there. */
static struct slice release_value(const char *release, const char *key)
{
    return unquote(line_value(release, key));
}

static bool is_name(char c)
{
    return (unsigned char)c >= 0x80 || c == '.' || c == '-' || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The first name of the line of /etc/hosts that has the host's. */
static bool name_in_hosts(const char *host, char name[static NAME_BYTES])
{
    char *hosts = read_file("/etc/hosts");
    bool is_found = false;
    char *rest = hosts;
    for (char *line; !is_found && (line = strsep(&rest, "\n")) != NULL;) {
        char *word;
        char *words = line;
        unsigned count = 0;
        line[strcspn(line, "#")] = '\0';
        name[0] = '\0';
        while (!is_found && (word = strsep(&words, " \t")) != NULL) {
            if (word[0] == '\0' || count++ == 0)
                continue;
            if (count == 2) {
                bool is_valid = strlen(word) < NAME_BYTES - 1;
                for (const char *c = word; *c != '\0'; c++)
                    is_valid = is_valid && is_name(*c);
                if (!is_valid)
                    break;
                snprintf(name, NAME_BYTES, "%s", word);
            }
            is_found = strcmp(word, host) == 0;
        }
    }
    mem_free(hosts);
    return is_found;
}

static void drop_last_dot(char *name)
{
    size_t size = strlen(name);
    if (size > 0 && name[size - 1] == '.')
        name[size - 1] = '\0';
}

static struct addrinfo *look_up(const char *host, int flags)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found;
    return getaddrinfo(host, NULL, &hints, &found) == 0 ? found : NULL;
}

static bool canonical_name(const char *host, char name[static NAME_BYTES])
{
    struct addrinfo *found = look_up(host, AI_CANONNAME);
    bool has_name = found != NULL && found->ai_canonname != NULL && found->ai_canonname[0] != '\0';
    if (has_name)
        snprintf(name, NAME_BYTES, "%s", found->ai_canonname);
    drop_last_dot(name);
    if (found != NULL)
        freeaddrinfo(found);
    return has_name;
}

static bool name_of_address(const char *host, char name[static NAME_BYTES])
{
    struct addrinfo *found = look_up(host, 0);
    bool has_name = false;
    for (const struct addrinfo *at = found; at != NULL && !has_name; at = at->ai_next)
        has_name =
            getnameinfo(at->ai_addr, at->ai_addrlen, name, NAME_BYTES, NULL, 0, NI_NAMEREQD) == 0;
    if (has_name)
        drop_last_dot(name);
    if (found != NULL)
        freeaddrinfo(found);
    return has_name;
}

static bool name_from(const char *source, const char *host, char name[static NAME_BYTES])
{
    if (strcmp(source, "dns") == 0)
        return name_in_hosts(host, name) || canonical_name(host, name) ||
               name_of_address(host, name);
    if (strcmp(source, "cname") == 0)
        return canonical_name(host, name);
    if (strcmp(source, "lookup") == 0)
        return name_of_address(host, name);
    snprintf(name, NAME_BYTES, "%s", host);
    return true;
}

/* Names of GOARCH, by which the Go collector calls them. */
static const char *architecture(const char *machine)
{
    static const struct {
        const char *machine;
        const char *name;
    } rows[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"},   {"i686", "x86"},
                {"i386", "x86"},     {"ppc64", "ppc64"},     {"ppc64le", "ppc64"},
                {"s390x", "s390x"},  {"riscv64", "riscv64"}, {"loongarch64", "loong64"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(machine, rows[i].machine) == 0)
            return rows[i].name;
    return strncmp(machine, "arm", 3) == 0 ? "arm32" : machine;
}

/* Texts one after the other, each with its NUL, as far as there is room. */
struct texts {
    char bytes[TEXTS_BYTES];
    size_t size;
    size_t count;
};

static void texts_add(struct texts *texts, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size > sizeof(texts->bytes) - texts->size)
        return;
    memcpy(texts->bytes + texts->size, text, size);
    texts->size += size;
    texts->count++;
}

static bool is_shown(const struct ifaddrs *address)
{
    return (address->ifa_flags & IFF_UP) != 0 && (address->ifa_flags & IFF_LOOPBACK) == 0;
}

/* The addresses of one interface: getifaddrs has all hardware addresses first. */
static void add_addresses(struct texts *ips, const struct ifaddrs *all, const char *interface)
{
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        if (at->ifa_addr == NULL || strcmp(at->ifa_name, interface) != 0)
            continue;
        if (at->ifa_addr->sa_family == AF_INET) {
            const struct sockaddr_in *ip = (const struct sockaddr_in *)(const void *)at->ifa_addr;
            bool is_loopback = ntohl(ip->sin_addr.s_addr) >> 24 == 127;
            if (!is_loopback && inet_ntop(AF_INET, &ip->sin_addr, text, sizeof(text)) != NULL)
                texts_add(ips, text);
        } else if (at->ifa_addr->sa_family == AF_INET6) {
            const struct sockaddr_in6 *ip = (const struct sockaddr_in6 *)(const void *)at->ifa_addr;
            if (!IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr) &&
                inet_ntop(AF_INET6, &ip->sin6_addr, text, sizeof(text)) != NULL)
                texts_add(ips, text);
        }
    }
}

static void put_network(struct detected *detected, const bool wanted[SYSTEM_ATTRIBUTES])
{
    struct ifaddrs *all;
    struct texts *lists = mem_zalloc(3 * sizeof(*lists));
    struct texts *ips = &lists[0];
    struct texts *macs = &lists[1];
    struct texts *names = &lists[2];
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        char text[3 * 8 + 1] = "";
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_PACKET)
            continue;
        texts_add(names, at->ifa_name);
        if (!is_shown(at))
            continue;
        const struct sockaddr_ll *link = (const struct sockaddr_ll *)(const void *)at->ifa_addr;
        bool has_address = false;
        for (int i = 0; i < link->sll_halen && i < 8; i++)
            has_address |= link->sll_addr[i] != 0;
        for (int i = 0; has_address && i < link->sll_halen && i < 8; i++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%02X", i > 0 ? "-" : "",
                     link->sll_addr[i]);
        texts_add(macs, text);
        add_addresses(ips, all, at->ifa_name);
    }
    if (wanted[SYSTEM_HOST_IP])
        detected_put_texts(detected, "host.ip", ips->bytes, ips->count);
    if (wanted[SYSTEM_HOST_MAC])
        detected_put_texts(detected, "host.mac", macs->bytes, macs->count);
    if (wanted[SYSTEM_HOST_INTERFACE])
        detected_put_texts(detected, "host.interface", names->bytes, names->count);
    if (all != NULL)
        freeifaddrs(all);
    mem_free(lists);
}

/* "Debian GNU/Linux 12 (bookworm) (Linux host 6.1.0 #1 SMP x86_64)" */
static void put_description(struct detected *detected, const char *release,
                            const struct utsname *kernel)
{
    struct slice name = release_value(release, "NAME=");
    struct slice version = release_value(release, "VERSION=");
    char text[2 * sizeof(*kernel)];
    char system[sizeof(*kernel)];
    if (version.size == 0)
        version = release_value(release, "VERSION_ID=");
    if (name.size == 0 || version.size == 0) {
        name = release_value(release, "PRETTY_NAME=");
        version = slice_of(NULL, 0);
    }
    snprintf(system, sizeof(system), "%s %s %s %s %s", kernel->sysname, kernel->nodename,
             kernel->release, kernel->version, kernel->machine);
    if (name.size == 0)
        snprintf(text, sizeof(text), "%s", system);
    else
        snprintf(text, sizeof(text), "%.*s%s%.*s (%s)", (int)name.size, (const char *)name.data,
                 version.size > 0 ? " " : "", (int)version.size,
                 version.size > 0 ? (const char *)version.data : "", system);
    detected_put_text(detected, "os.description", slice_of_text(text));
}

/* Distributions tell their version in files of their own. */
static void put_version(struct detected *detected, const char *release, bool wants_version,
                        bool wants_name)
{
    char *debian = read_file("/etc/debian_version");
    char *alpine = read_file("/etc/alpine-release");
    char *lsb = read_file("/etc/lsb-release");
    struct slice name = release_value(release, "ID=");
    struct slice version = release_value(release, "VERSION_ID=");
    bool is_ubuntu = slice_equal_text(release_value(lsb, "DISTRIB_ID="), "Ubuntu");
    if (debian[0] != '\0' && is_ubuntu) {
        name = slice_of_text("ubuntu");
        version = release_value(lsb, "DISTRIB_RELEASE=");
    } else if (debian[0] != '\0') {
        if (!slice_equal_text(name, "raspbian"))
            name = slice_of_text("debian");
        version = slice_trim(slice_of_text(debian));
    } else if (alpine[0] != '\0') {
        name = slice_of_text("alpine");
        version = slice_trim(slice_of_text(alpine));
    }
    if (wants_version)
        detected_put_text(detected, "os.version", version);
    if (wants_name)
        detected_put_text(detected, "os.name", name);
    mem_free(debian);
    mem_free(alpine);
    mem_free(lsb);
}

/* Behind the colon of the first line with that key. */
static struct slice cpu_value(const char *info, const char *key)
{
    struct slice value = line_value(info, key);
    return value.size > 0 && value.data[0] == ':'
               ? slice_trim(slice_of(value.data + 1, value.size - 1))
               : slice_of(NULL, 0);
}

static int64_t number_of(struct slice text)
{
    int64_t number = 0;
    for (size_t i = 0; i < text.size && text.data[i] >= '0' && text.data[i] <= '9' && i < 15; i++)
        number = 10 * number + (text.data[i] - '0');
    return number;
}

static void put_cpu(struct detected *detected, const bool wanted[SYSTEM_ATTRIBUTES])
{
    static const struct {
        enum system_attribute attribute;
        const char *name;
        const char *key;
    } rows[] = {{SYSTEM_CPU_VENDOR, "host.cpu.vendor.id", "vendor_id\t"},
                {SYSTEM_CPU_FAMILY, "host.cpu.family", "cpu family\t"},
                {SYSTEM_CPU_MODEL, "host.cpu.model.id", "model\t"},
                {SYSTEM_CPU_MODEL_NAME, "host.cpu.model.name", "model name\t"},
                {SYSTEM_CPU_STEPPING, "host.cpu.stepping", "stepping\t"},
                {SYSTEM_CPU_CACHE, "host.cpu.cache.l2.size", "cache size\t"}};
    bool is_wanted = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_wanted |= wanted[rows[i].attribute];
    if (!is_wanted)
        return;
    char *info = read_file("/proc/cpuinfo");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct slice value = cpu_value(info, rows[i].key);
        if (!wanted[rows[i].attribute])
            continue;
        if (rows[i].attribute == SYSTEM_CPU_CACHE)
            detected_put_integer(detected, rows[i].name, number_of(value));
        else
            detected_put_text(detected, rows[i].name, value);
    }
    mem_free(info);
}

static void put_text_if(struct detected *detected, bool is_wanted, const char *key,
                        struct slice text)
{
    if (is_wanted)
        detected_put_text(detected, key, text);
}

/* In the order of the Go collector. */
static void put_all(struct detected *detected, const bool wanted[SYSTEM_ATTRIBUTES],
                    const char *name, const struct utsname *kernel)
{
    char *release = read_file("/etc/os-release");
    char *id = read_file("/etc/machine-id");
    if (release[0] == '\0') {
        mem_free(release);
        release = read_file("/usr/lib/os-release");
    }
    if (id[0] == '\0') {
        mem_free(id);
        id = read_file("/var/lib/dbus/machine-id");
    }
    struct slice build = release_value(release, "BUILD_ID=");
    put_text_if(detected, wanted[SYSTEM_HOST_NAME], "host.name", slice_of_text(name));
    put_text_if(detected, wanted[SYSTEM_OS_TYPE], "os.type", slice_of_text("linux"));
    put_version(detected, release, wanted[SYSTEM_OS_VERSION], false);
    if (id[0] != '\0')
        put_text_if(detected, wanted[SYSTEM_HOST_ID], "host.id", slice_trim(slice_of_text(id)));
    put_text_if(detected, wanted[SYSTEM_HOST_ARCH], "host.arch",
                slice_of_text(architecture(kernel->machine)));
    if (wanted[SYSTEM_HOST_IP] || wanted[SYSTEM_HOST_MAC] || wanted[SYSTEM_HOST_INTERFACE])
        put_network(detected, wanted);
    if (wanted[SYSTEM_OS_DESCRIPTION])
        put_description(detected, release, kernel);
    put_version(detected, release, false, wanted[SYSTEM_OS_NAME]);
    put_text_if(detected, wanted[SYSTEM_OS_BUILD_ID], "os.build.id",
                build.size > 0 ? build : slice_of_text(kernel->release));
    put_cpu(detected, wanted);
    mem_free(release);
    mem_free(id);
}

bool detect_system(struct detected *detected, const bool wanted[SYSTEM_ATTRIBUTES],
                   const char *const *sources, size_t sources_count, unsigned timeout_s,
                   struct error *error)
{
    char host[HOST_NAME_MAX + 1] = "";
    char name[NAME_BYTES] = "";
    struct utsname kernel;
    bool has_name = false;
    if (uname(&kernel) != 0 || gethostname(host, sizeof(host) - 1) != 0)
        return error_set(error, "cannot find out the host's name");
    if (res_init() == 0) {
        _res.retrans = (int)timeout_s;
        _res.retry = 1;
    }
    for (size_t i = 0; i < sources_count && !has_name; i++)
        has_name = name_from(sources[i], host, name);
    if (!has_name)
        return error_set(error, "no source of system::hostname_sources has a name of this host; "
                                "add \"os\", which always has");
    put_all(detected, wanted, name, &kernel);
    detected->schema_url = SCHEMA_URL;
    return true;
}

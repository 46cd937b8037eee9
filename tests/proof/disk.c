/* Stands between a process and the files of one directory: counts what is asked of the system, lets one call fail or the
   process die there, and records every change with its data. Loaded with LD_PRELOAD, told what to do through ctypes. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS 4096
#define NAMES 64
#define TRACE 65536

enum fault { NONE, FAIL, FAIL_FROM_HERE, SHORT, DIE, TEAR, FAIL_SYNC };

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char directory[PATH_MAX];
static size_t directory_length;
/* The number of the file a descriptor belongs to, 0 for files that are not watched. The directory itself is number 1. */
static int number_of[FDS];
static struct {
    char path[PATH_MAX];
    int number;
} names[NAMES];
static int last_number = 1;
static int record_to = -1;

static long calls, syncs, faulty_call;
static enum fault fault;
static int fault_code, has_struck;
static char trace[TRACE];
static size_t trace_length;

#define REAL(name)                                      \
    static __typeof__(name) *real;                      \
    if (!real)                                          \
        real = (__typeof__(real))dlsym(RTLD_NEXT, #name);

static int is_watched(const char *path) {
    return directory_length && path && !strncmp(path, directory, directory_length) &&
           (path[directory_length] == '/' || !path[directory_length]);
}

static int number(int fd) { return fd >= 0 && fd < FDS ? number_of[fd] : 0; }

/* Counts a call, and says what is to become of it. */
static enum fault meet(const char *name) {
    pthread_mutex_lock(&mutex);
    long call = ++calls;
    size_t length = strlen(name);
    if (trace_length + length + 2 < TRACE) {
        memcpy(trace + trace_length, name, length);
        trace_length += length;
        trace[trace_length++] = ' ';
        trace[trace_length] = 0;
    }
    /* A disk that fails for a while does not take the kernel's locks along. */
    int lasts = fault == FAIL_FROM_HERE && call > faulty_call && strcmp(name, "fcntl");
    int is_sync = strstr(name, "sync") != NULL;
    syncs += is_sync;
    int is_meant = fault == FAIL_SYNC ? is_sync && syncs == faulty_call : call == faulty_call;
    int strikes = fault != NONE && (is_meant || lasts);
    has_struck |= strikes;
    pthread_mutex_unlock(&mutex);
    if (!strikes)
        return NONE;
    if (fault == DIE)
        kill(getpid(), SIGKILL);
    errno = fault_code;
    return fault;
}

/* Names the file that stands at a path: a new number if it was just made. */
static int find(const char *path, int is_new) {
    int empty = -1;
    for (int at = 0; at < NAMES; at++) {
        if (!names[at].number)
            empty = empty < 0 ? at : empty;
        else if (!strcmp(names[at].path, path)) {
            if (is_new)
                names[at].number = ++last_number;
            return names[at].number;
        }
    }
    if (empty < 0)
        abort();
    strncpy(names[empty].path, path, PATH_MAX - 1);
    return names[empty].number = ++last_number;
}

static void record(char what, int file, int64_t offset, const void *data, int64_t length) {
    if (record_to < 0)
        return;
    struct __attribute__((packed)) {
        char what;
        int32_t file;
        int64_t offset, length;
    } head = {what, file, offset, length};
    if (write(record_to, &head, sizeof head) != sizeof head || (data && write(record_to, data, length) != length))
        abort();
}

/* The side that Python speaks to. */

void disk_watch(const char *path) {
    directory_length = strlen(strcpy(directory, path));
    memset(number_of, 0, sizeof number_of);
    memset(names, 0, sizeof names);
    last_number = 1;
}

void disk_record(int fd) { record_to = fd; }

void disk_mark(int64_t mark) {
    pthread_mutex_lock(&mutex);
    record('M', 0, mark, NULL, 0);
    pthread_mutex_unlock(&mutex);
}

void disk_arm(int kind, int code, long call) {
    calls = syncs = trace_length = has_struck = 0;
    trace[0] = 0;
    fault_code = code;
    faulty_call = call;
    fault = kind;
}

int disk_disarm(void) {
    fault = NONE;
    return has_struck;
}

const char *disk_trace(void) { return trace; }

/* The calls themselves. */

static int opened(const char *path, int flags, mode_t mode, int (*real)(const char *, int, ...)) {
    if (!is_watched(path))
        return real(path, flags, mode);
    if (meet("open"))
        return -1;
    pthread_mutex_lock(&mutex);
    int is_directory = !path[directory_length];
    int is_new = flags & O_CREAT && faccessat(AT_FDCWD, path, F_OK, 0) != 0;
    int fd = real(path, flags, mode);
    if (fd >= FDS)
        abort();
    if (fd >= 0) {
        number_of[fd] = is_directory ? 1 : find(path, is_new);
        if (is_new)
            record('C', number_of[fd], 0, path, strlen(path));
    }
    pthread_mutex_unlock(&mutex);
    return fd;
}

#define OPEN(name)                                       \
    int name(const char *path, int flags, ...) {         \
        REAL(name)                                       \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode_t mode = va_arg(rest, mode_t);              \
        va_end(rest);                                    \
        return opened(path, flags, mode, (int (*)(const char *, int, ...))real); \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    REAL(close)
    int is_watched = number(fd);
    /* Linux closes the descriptor whatever it answers. */
    enum fault met = is_watched ? meet("close") : NONE;
    int code = errno;
    if (is_watched)
        number_of[fd] = 0;
    int answer = real(fd);
    if (met == NONE)
        return answer;
    errno = code;
    return -1;
}

static ssize_t written(int fd, const void *data, size_t length, off_t offset,
                       ssize_t (*real)(int, const void *, size_t, off_t)) {
    if (!number(fd))
        return real(fd, data, length, offset);
    pthread_mutex_lock(&mutex);
    enum fault met = meet("pwrite");
    ssize_t answer = -1;
    if (met == SHORT || met == TEAR)
        length = length / 2 ? length / 2 : 1;
    if (met == NONE || met == SHORT || met == TEAR)
        answer = real(fd, data, length, offset);
    if (met == TEAR)
        kill(getpid(), SIGKILL);
    if (answer > 0)
        record('W', number(fd), offset, data, answer);
    pthread_mutex_unlock(&mutex);
    return answer;
}

#define WRITE(name)                                                            \
    ssize_t name(int fd, const void *data, size_t length, off_t offset) {      \
        REAL(name)                                                             \
        return written(fd, data, length, offset, real);                        \
    }
WRITE(pwrite)
WRITE(pwrite64)

#define READ(name)                                                      \
    ssize_t name(int fd, void *into, size_t length, off_t offset) {     \
        REAL(name)                                                      \
        enum fault met = number(fd) ? meet("pread") : NONE;             \
        if (met == SHORT)                                               \
            return real(fd, into, length / 2, offset);                  \
        return met ? -1 : real(fd, into, length, offset);               \
    }
READ(pread)
READ(pread64)

#define TRUNCATE(name)                                    \
    int name(int fd, off_t length) {                      \
        REAL(name)                                        \
        if (!number(fd))                                  \
            return real(fd, length);                      \
        if (meet("ftruncate"))                            \
            return -1;                                    \
        pthread_mutex_lock(&mutex);                       \
        int answer = real(fd, length);                    \
        if (!answer)                                      \
            record('T', number(fd), length, NULL, 0);     \
        pthread_mutex_unlock(&mutex);                     \
        return answer;                                    \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* Recorded when it begins: only what was written before is sure to be on the disk when it ends. */
#define SYNC(name)                               \
    int name(int fd) {                           \
        REAL(name)                               \
        if (!number(fd))                         \
            return real(fd);                     \
        int fails = meet(#name);                 \
        pthread_mutex_lock(&mutex);              \
        record(fails ? 'F' : 'S', number(fd), 0, NULL, 0); \
        pthread_mutex_unlock(&mutex);            \
        return fails ? -1 : real(fd);            \
    }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    REAL(unlink)
    if (!is_watched(path))
        return real(path);
    if (meet("unlink"))
        return -1;
    pthread_mutex_lock(&mutex);
    int answer = real(path);
    for (int at = 0; !answer && at < NAMES; at++)
        if (names[at].number && !strcmp(names[at].path, path)) {
            record('U', names[at].number, 0, path, strlen(path));
            names[at].number = 0;
        }
    pthread_mutex_unlock(&mutex);
    return answer;
}

#define FCNTL(name)                                         \
    int name(int fd, int command, ...) {                    \
        REAL(name)                                          \
        va_list rest;                                       \
        va_start(rest, command);                            \
        void *argument = va_arg(rest, void *);              \
        va_end(rest);                                       \
        if (number(fd) && meet("fcntl"))                    \
            return -1;                                      \
        return real(fd, command, argument);                 \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

#define MMAP(name)                                                                               \
    void *name(void *address, size_t length, int protection, int flags, int fd, off_t offset) { \
        REAL(name)                                                                               \
        if (number(fd) && meet("mmap"))                                                          \
            return MAP_FAILED;                                                                   \
        return real(address, length, protection, flags, fd, offset);                             \
    }
MMAP(mmap)
MMAP(mmap64)

#define BY_PATH(name, shown, parameters, arguments)  \
    int name parameters {                            \
        REAL(name)                                   \
        if (is_watched(path) && meet(shown))         \
            return -1;                               \
        return real arguments;                       \
    }
BY_PATH(stat, "stat", (const char *restrict path, struct stat *restrict into), (path, into))
BY_PATH(stat64, "stat", (const char *restrict path, struct stat64 *restrict into), (path, into))
BY_PATH(lstat, "lstat", (const char *restrict path, struct stat *restrict into), (path, into))
BY_PATH(lstat64, "lstat", (const char *restrict path, struct stat64 *restrict into), (path, into))
BY_PATH(statx, "statx", (int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict into),
        (at, path, flags, mask, into))
BY_PATH(access, "access", (const char *path, int mode), (path, mode))

#define BY_DESCRIPTOR(name, shown, parameters, arguments)  \
    int name parameters {                                  \
        REAL(name)                                         \
        if (number(fd) && meet(shown))                     \
            return -1;                                     \
        return real arguments;                             \
    }
BY_DESCRIPTOR(fstat, "fstat", (int fd, struct stat *into), (fd, into))
BY_DESCRIPTOR(fstat64, "fstat", (int fd, struct stat64 *into), (fd, into))
BY_DESCRIPTOR(fchmod, "fchmod", (int fd, mode_t mode), (fd, mode))
BY_DESCRIPTOR(fchown, "fchown", (int fd, uid_t user, gid_t group), (fd, user, group))

ssize_t readlink(const char *restrict path, char *restrict into, size_t length) {
    REAL(readlink)
    if (is_watched(path) && meet("readlink"))
        return -1;
    return real(path, into, length);
}

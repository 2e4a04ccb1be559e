/* A layer between a program and the disk that fails on demand: the n-th call that changes a file below a folder kills the
   process, or returns an error (once, or from then on). Loaded with LD_PRELOAD; armed by `fault_arm`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char under[4096];
static long calls = 0, at = -1;
static int error = 0, lasting = 0, armed = 0;

void fault_arm(const char *folder, long number, int code, int goes_on) {
  strncpy(under, folder, sizeof under - 1);
  calls = 0; at = number; error = code; lasting = goes_on; armed = 1;
}
long fault_calls(void) { return calls; }
void fault_disarm(void) { armed = 0; }

static int below(const char *path) { return path && strncmp(path, under, strlen(under)) == 0; }

static int fails(int counts) {
  if (!armed || !counts) return 0;
  long number = calls++;
  if (!(number == at || (lasting && at >= 0 && number > at))) return 0;
  if (error == 0) kill(getpid(), SIGKILL);
  errno = error;
  return 1;
}
static int fails_path(const char *path) { return armed && fails(below(path)); }
static int fails_file(int file) {
  if (!armed) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(below(path));
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define OPEN(name) int name(const char *path, int flags, ...) { REAL(name); mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); } \
  if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails_path(path)) return -1; return real(path, flags, mode); }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *data, size_t size) { REAL(write); return fails_file(file) ? -1 : real(file, data, size); }
ssize_t pwrite(int file, const void *data, size_t size, off_t place) { REAL(pwrite); return fails_file(file) ? -1 : real(file, data, size, place); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) { REAL(pwrite64); return fails_file(file) ? -1 : real(file, data, size, place); }
int fsync(int file) { REAL(fsync); return fails_file(file) ? -1 : real(file); }
int fdatasync(int file) { REAL(fdatasync); return fails_file(file) ? -1 : real(file); }
int ftruncate(int file, off_t size) { REAL(ftruncate); return fails_file(file) ? -1 : real(file, size); }
int ftruncate64(int file, off64_t size) { REAL(ftruncate64); return fails_file(file) ? -1 : real(file, size); }
int rename(const char *from, const char *to) { REAL(rename); return fails_path(to) ? -1 : real(from, to); }
int unlink(const char *path) { REAL(unlink); return fails_path(path) ? -1 : real(path); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return fails_path(path) ? -1 : real(path, mode); }
int rmdir(const char *path) { REAL(rmdir); return fails_path(path) ? -1 : real(path); }

"""Libraries in C that are loaded before all others, and stand between a process and the system."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["FAILING_CALLS", "compiled"]

HEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, #name)
#define MODE va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest)
"""

# Make the k-th call of a function fail, once or from then on, or kill the process in it.
FAILING_CALLS = r"""
static char armed[20]; static long left; static int number, sticky, fired;
void fault_arm(const char *name, long k, int error, int stay)
{ left = k; number = error; sticky = stay; fired = 0; strncpy(armed, name, sizeof armed - 1); }
int fault_disarm(void) { armed[0] = 0; return fired; }
static int hit(const char *name) {
    if (strcmp(armed, name)) return 0;
    if (--left > 0 || (left < 0 && !sticky)) return 0;
    if (!number) kill(getpid(), SIGKILL);
    fired = 1; errno = number; return 1; }
#define OPEN(name) int name(const char *path, int flags, ...) { MODE; \
    REAL(int, name, const char *, int, ...); return hit("open") ? -1 : real(path, flags, mode); }
OPEN(open) OPEN(open64)
#define OPENAT(name) int name(int at, const char *path, int flags, ...) { MODE; \
    REAL(int, name, int, const char *, int, ...); return hit("open") ? -1 : real(at, path, flags, mode); }
OPENAT(openat) OPENAT(openat64)
int close(int f) { REAL(int, close, int); int failed = real(f); return hit("close") ? -1 : failed; }
static size_t part(size_t n) { return n > 1 && hit("short") ? n / 2 : n; }
ssize_t write(int f, const void *b, size_t n)
{ REAL(ssize_t, write, int, const void *, size_t); return hit("write") ? -1 : real(f, b, part(n)); }
#define PWRITE(name) ssize_t name(int f, const void *b, size_t n, off_t o) \
{ REAL(ssize_t, name, int, const void *, size_t, off_t); return hit("write") ? -1 : real(f, b, part(n), o); }
PWRITE(pwrite) PWRITE(pwrite64)
ssize_t read(int f, void *b, size_t n)
{ REAL(ssize_t, read, int, void *, size_t); return hit("read") ? -1 : real(f, b, n); }
#define PREAD(name) ssize_t name(int f, void *b, size_t n, off_t o) \
{ REAL(ssize_t, name, int, void *, size_t, off_t); return hit("read") ? -1 : real(f, b, n, o); }
PREAD(pread) PREAD(pread64)
#define SYNC(name) int name(int f) { REAL(int, name, int); return hit("sync") ? -1 : real(f); }
SYNC(fsync) SYNC(fdatasync)
#define TRUNCATE(name) int name(int f, off_t n) \
{ REAL(int, name, int, off_t); return hit("ftruncate") ? -1 : real(f, n); }
TRUNCATE(ftruncate) TRUNCATE(ftruncate64)
int unlink(const char *p) { REAL(int, unlink, const char *); return hit("unlink") ? -1 : real(p); }
int mkdir(const char *p, mode_t m)
{ REAL(int, mkdir, const char *, mode_t); return hit("mkdir") ? -1 : real(p, m); }
#define FCNTL(name) int name(int f, int c, ...) { \
  va_list r; va_start(r, c); void *a = va_arg(r, void *); va_end(r); \
  REAL(int, name, int, int, ...); return hit("fcntl") ? -1 : real(f, c, a); }
FCNTL(fcntl) FCNTL(fcntl64)
int flock(int f, int o) { REAL(int, flock, int, int); return hit("flock") ? -1 : real(f, o); }
int rename(const char *a, const char *b)
{ REAL(int, rename, const char *, const char *); return hit("rename") ? -1 : real(a, b); }
int link(const char *a, const char *b)
{ REAL(int, link, const char *, const char *); return hit("link") ? -1 : real(a, b); }
int linkat(int x, const char *a, int y, const char *b, int z) {
  REAL(int, linkat, int, const char *, int, const char *, int);
  return hit("link") ? -1 : real(x, a, y, b, z); }
#define STAT(name, first) int name(first p, void *s) { REAL(int, name, first, void *); \
  return hit("stat") ? -1 : real(p, s); }
STAT(stat, const char *) STAT(stat64, const char *) STAT(lstat, const char *) STAT(lstat64, const char *)
STAT(fstat, int) STAT(fstat64, int)
int statx(int at, const char *p, int flags, unsigned mask, void *s) {
  REAL(int, statx, int, const char *, int, unsigned, void *);
  return hit("stat") ? -1 : real(at, p, flags, mask, s); }
"""


def compiled(source: str, folder: Path) -> str:
    """Compile a library in this folder and return its path; skip the test where that is not possible.

    ``source``: C code, in which ``REAL`` declares the replaced function as ``real``, and ``MODE`` reads the
    mode that a call of ``open`` may have.
    """
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or not Linux: system calls cannot be replaced")
    (folder / "library.c").write_text(HEAD + source)
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", "library.so", "library.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "library.so")

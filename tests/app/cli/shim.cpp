// SPDX-License-Identifier: GPL-3.0-or-later
// Loaded before the C library (LD_PRELOAD). Calls that change a folder are counted; what happens at the n-th of them is in the environment:
//   SHIM_KILL_AT=n      the process is killed before it
//   SHIM_FAIL_AT=n      it fails with EIO, and is not done
//   SHIM_NO_EXCHANGE=1  renameat2 knows no RENAME_EXCHANGE, as on many file systems
//   SHIM_THREADS=n      no more than n threads can be started
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

namespace {

int number(const char* name) {
  const char* text = getenv(name);
  return text ? atoi(text) : -1;
}

/// Counts a call; false when it is to fail.
bool passes() {
  static std::atomic<int> calls{0};
  const int call = ++calls;
  if (call == number("SHIM_KILL_AT")) kill(getpid(), SIGKILL);
  if (call != number("SHIM_FAIL_AT")) return true;
  errno = EIO;
  return false;
}

template <class F>
F* real(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int rename(const char* from, const char* to) noexcept { return passes() ? real(&rename, "rename")(from, to) : -1; }
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (!passes()) return -1;
  if ((flags & RENAME_EXCHANGE) != 0 && getenv("SHIM_NO_EXCHANGE")) {
    errno = EINVAL;
    return -1;
  }
  return real(&renameat2, "renameat2")(from_at, from, to_at, to, flags);
}
int unlink(const char* file) noexcept { return passes() ? real(&unlink, "unlink")(file) : -1; }
int rmdir(const char* folder) noexcept { return passes() ? real(&rmdir, "rmdir")(folder) : -1; }
int mkdir(const char* folder, mode_t mode) noexcept { return passes() ? real(&mkdir, "mkdir")(folder, mode) : -1; }
int linkat(int from_at, const char* from, int to_at, const char* to, int flags) noexcept {
  return passes() ? real(&linkat, "linkat")(from_at, from, to_at, to, flags) : -1;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept {
  static std::atomic<int> threads{0};
  const int most = number("SHIM_THREADS");
  if (most >= 0 && ++threads > most) return EAGAIN;
  return real(&pthread_create, "pthread_create")(thread, attributes, start, argument);
}

}  // extern "C"

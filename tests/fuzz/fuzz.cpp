// SPDX-License-Identifier: GPL-3.0-or-later
// One libFuzzer program for every loader; RECLAB_FUZZ_TARGET names which. A loader reads a file or throws reclab::Error with a sentence;
// what else it does (another exception, a crash, a report of a sanitizer, more than 1 GiB at once, five seconds) is a failure.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "files/archive.h"
#include "models/registry.h"
#include "sequence/text/table.h"
#include "timing/pace.h"
#include "timing/roof.h"

using namespace reclab;
namespace fs = std::filesystem;

void fuzz_session(const fs::path& folder, std::string_view bytes);  // session.cpp
void fuzz_lesson(const fs::path& folder, std::string_view bytes);   // lesson.cpp
void fuzz_answers(std::string_view bytes);

namespace {

fs::path folder;  // in memory, of this process

fs::path put(const char* name, std::string_view bytes) {
  const fs::path file = folder / name;
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  ::close(descriptor);
  return file;
}

/// Refusing is right; refusing without a word is not.
template <class F>
void may_refuse(const F& read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::strlen(error.what()) == 0) std::abort();
  }
}

void table(std::string_view bytes) {
  LoadOptions options;
  if (bytes.ends_with('@')) options.time = "none";
  if (bytes.ends_with('1')) options.columns = {"1"};
  if (bytes.ends_with('\n')) options.missing = Missing::hold;
  may_refuse([&] { read_text_table(std::string(bytes), "x.csv", options); });
}

void npy(std::string_view bytes) {
  may_refuse([&] { parse_npy(bytes, "x.npy"); });
}

void archive(const char* name, std::string_view bytes) {
  const fs::path file = put(name, bytes);
  may_refuse([&] {
    kind_of_file(file);
    const Archive read(file);
    for (const auto& entry : read.names())
      may_refuse([&] {
        const Shape shape = read.shape(entry);
        if (read.read(entry).shape != shape) std::abort();
      });
  });
}
void npz(std::string_view bytes) { archive("x.npz", bytes); }
void safetensors(std::string_view bytes) { archive("x.safetensors", bytes); }

void sequence(std::string_view bytes) {
  const fs::path file = put("x.dat", bytes);
  for (const bool standardise : {false, true})
    may_refuse([&] {
      LoadOptions options;
      options.standardise = standardise;
      load_sequence(file, options);
    });
  for (const Missing missing : {Missing::leave_out, Missing::hold, Missing::interpolate, Missing::mask})
    may_refuse([&] {
      LoadOptions options;
      options.missing = missing;
      if (missing == Missing::mask) options.target = {"next"};
      const Sequence read = load_sequence(file, options);
      for (const double value : read.input)
        if (std::isnan(value)) std::abort();
    });
}

void preset(std::string_view bytes) {
  put("x.json", bytes);
  const PresetLibrary library(builtin_registry(), {folder});
  for (const Preset& read : library.presets()) hyper_of(builtin_registry(), read);
  if (library.presets().empty() == library.problems().empty()) std::abort();
}

RunRequest request_for(const char* id) {
  static const PresetLibrary library(builtin_registry(), preset_folders());
  RunRequest request;
  request.preset = library.find(id);
  request.set = {{"width", "4"}};
  if (std::strcmp(id, "lru") == 0) request.set.emplace_back("state", "3");
  request.sequence = make_task("noise", {.length = 4, .seed = 1, .standardise = false});
  return request;
}
const std::vector<RunRequest>& requests() {
  static const std::vector<RunRequest> all{request_for("elman"), request_for("lru"), request_for("transformer")};
  return all;
}
void fits(fs::path RunRequest::* which, std::string_view bytes) {
  const fs::path file = put("x.npz", bytes);
  for (RunRequest request : requests()) {
    request.*which = file;
    may_refuse([&] { check_files(builtin_registry(), request); });
  }
}
void weights(std::string_view bytes) { fits(&RunRequest::weights, bytes); }
void state(std::string_view bytes) { fits(&RunRequest::state, bytes); }

/// A cache may hold anything: it is never an Error.
void cache(std::string_view bytes) {
  const fs::path file = put("cache.json", bytes);
  paces_of_machine(file, "cpu");
  keep_pace(file, "cpu", 0.01, nullptr);
}

void session(std::string_view bytes) { fuzz_session(folder, bytes); }
void lesson(std::string_view bytes) { fuzz_lesson(folder, bytes); }
void answers(std::string_view bytes) { fuzz_answers(bytes); }

constexpr std::pair<std::string_view, void (*)(std::string_view)> targets[] = {
    {"table", table},       {"npy", npy},        {"npz", npz},         {"safetensors", safetensors},
    {"sequence", sequence}, {"sound", sequence}, {"preset", preset},   {"weights", weights},
    {"state", state},       {"cache", cache},    {"session", session}, {"lesson", lesson},
    {"answers", answers}};
void (*target)(std::string_view) = nullptr;

std::uint64_t number(const std::uint8_t* bytes, int width) {
  std::uint64_t value = 0;
  while (width-- > 0) value = value << 8 | bytes[width];
  return value;
}

/// Puts the right checksum into the directory entries of an archive, so that mutations of its arrays get past it.
void repair(std::uint8_t* data, std::size_t size) {
  constexpr std::size_t entry = 46, local = 30;
  for (std::size_t i = 0; i + entry <= size; ++i) {
    if (std::memcmp(data + i, "PK\1\2", 4) != 0) continue;
    const std::uint64_t method = number(data + i + 10, 2), packed = number(data + i + 20, 4), at = number(data + i + 42, 4);
    if (at + local > size) continue;
    const std::uint64_t from = at + local + number(data + at + 26, 2) + number(data + at + 28, 2);
    if (from > size || packed > size - from) continue;
    std::uint32_t crc = 0;
    if (method == 0) {
      crc = static_cast<std::uint32_t>(crc32_z(0, data + from, packed));
    } else if (method == 8) {
      std::string out(std::min<std::uint64_t>(number(data + i + 24, 4), 1 << 20), '\0');
      z_stream stream{};
      if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) continue;
      stream.next_in = data + from;
      stream.avail_in = static_cast<uInt>(packed);
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      inflate(&stream, Z_FINISH);
      crc = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), stream.total_out));
      inflateEnd(&stream);
    } else {
      continue;
    }
    for (int b = 0; b < 4; ++b) data[i + 16 + static_cast<std::size_t>(b)] = static_cast<std::uint8_t>(crc >> (8 * b));
  }
}

}  // namespace

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 4 != 0) repair(data, size);
  return size;
}

int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("RECLAB_FUZZ_TARGET");
  for (const auto& [known, function] : targets)
    if (name && known == name) target = function;
  if (!target) {
    std::fputs("RECLAB_FUZZ_TARGET is one of", stderr);
    for (const auto& [known, function] : targets) std::fprintf(stderr, " %.*s", static_cast<int>(known.size()), known.data());
    std::fputs("\n", stderr);
    std::exit(2);
  }
  std::string made = (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) + "/reclab-fuzz-XXXXXX";
  if (!::mkdtemp(made.data())) std::abort();
  folder = made;
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  if (target == weights || target == state) requests();  // reads all presets, which is no time of an input
  put("data.csv", "t,x\n1,2\n2,3\n");
  std::atexit([] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  });
  return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    target({reinterpret_cast<const char*>(data), size});
  } catch (const std::bad_alloc&) {
    // A limit of the fuzzer's own on memory; what asks for too much at once is reported by it.
  }
  return 0;
}

}  // extern "C"

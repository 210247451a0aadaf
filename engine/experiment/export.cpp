// SPDX-License-Identifier: GPL-3.0-or-later
#include <set>

#include "array/demand.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "trace/writers.h"

namespace reclab {
namespace {

void add(NpzWriter& archive, const TraceArray& array) {
  if (array.is_complex())
    archive.add(array.key, array.shape, std::span<const std::complex<double>>(*array.complex));
  else
    archive.add(array.key, array.shape, std::span<const double>(*array.real));
}

template <class Arrays>
void save(const std::filesystem::path& path, const Arrays& add_all) {
  AtomicFile file(path);
  NpzWriter archive(file);
  add_all(archive);
  archive.finish();
  file.commit();
}

}  // namespace

void save_weights(const Trace& trace, const std::filesystem::path& file) {
  save(file, [&](NpzWriter& archive) {
    for (const TraceArray* array : trace.of(Kind::param)) add(archive, *array);
  });
}

void save_state(const FinalState& state, const std::filesystem::path& file) {
  save(file, [&](NpzWriter& archive) {
    for (const auto& [key, array] : state) add(archive, array);
  });
}

void export_run(const RunResult& result, const std::filesystem::path& folder, bool csv) {
  RECLAB_DEMAND(result.trace);
  const Trace& trace = *result.trace;
  AtomicFolder out(folder);
  std::vector<WrittenFile> files;
  const auto write = [&](const std::string& name, const auto& writer) {
    AtomicFile& file = out.file(name);
    writer(file);
    files.push_back(out.finish(file));
  };
  write("trace.npz", [&](AtomicFile& file) { write_trace_npz(trace, file); });
  write("state.npz", [&](AtomicFile& file) {
    NpzWriter archive(file);
    for (const auto& [key, array] : result.state) add(archive, array);
    archive.finish();
  });
  if (csv) {
    std::set<std::string> taken;
    for (const auto& array : trace.arrays()) {
      std::string key = array->key;
      while (!taken.insert(csv_file_name(key)).second) key += "_";  // "a/b" and "a_b" are two arrays
      write(csv_file_name(key), [&](AtomicFile& file) { write_csv(trace, *array, file); });
    }
  }
  // The last file of a folder is the one that is never there without the others, and this one names them.
  write("manifest.json", [&](AtomicFile& file) { file.write(manifest_json(trace, files)); });
  out.commit();
}

}  // namespace reclab

// SPDX-License-Identifier: GPL-3.0-or-later
// NumPy's NPZ format: a ZIP archive (PKWARE APPNOTE 6.3.10) of NPY files, one an array, named <key>.npy.
#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/array_file.h"
#include "files/files.h"
#include "files/npy.h"

namespace reclab {

/// An archive open for reading. Members may be stored or deflated, with zip64 sizes and data descriptors. Errors name the file, the
/// member and the cure: not an archive, cut short, damaged (CRC), encrypted, compressed otherwise; and those of parse_npy.
class NpzFile final : public ArrayFile {
 public:
  explicit NpzFile(const std::filesystem::path& file);
  const std::filesystem::path& path() const override { return file_.path(); }
  /// The keys, without ".npy", in the order of the archive. Members of other kinds are not listed.
  const std::vector<std::string>& names() const override { return names_; }
  bool has(std::string_view name) const override;
  /// Throws Error naming the keys of the file if there is none of that name.
  NpyArray read(std::string_view name) const override;
  /// Type and shape alone, which take a few bytes of a compressed array of any size. Errors as read().
  NpyHeader header(std::string_view name) const override;
  /// Whether an array has texts: NumPy's type <U, of one dimension or none. And these as UTF-8. Errors as read(), and for what is no
  /// Unicode, or more than 16 MiB.
  bool has_texts(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

 private:
  class Pieces;
  NpyHeader header(Pieces& pieces, NpyContent content = NpyContent::numbers) const;
  struct Member {
    std::uint64_t offset = 0, packed = 0, size = 0;
    std::uint32_t crc = 0;
    int method = 0;
    bool encrypted = false;
  };
  [[noreturn]] void damaged(const std::string& what) const;
  InputFile file_;
  std::vector<std::string> names_;
  std::map<std::string, Member, std::less<>> members_;
};

/// Error where the name of an array could not stand in a sentence, and so is no name: control characters, or more than 1000 letters.
void check_array_name(std::string_view name, const std::string& file);
/// "a, b, c, and 5 more", "none": the names that there are, printable, for sentences.
std::string some_of(const std::vector<std::string>& names);

/// Writes an archive array by array into a file under construction; the data goes from the span to the disk. Uncompressed, as
/// numpy.savez does; the same arrays give the same bytes.
class NpzWriter {
 public:
  /// Sizes, offsets and counts from zip64_from on are written as zip64 (by the format, 0xffffffff at the latest; less only for tests).
  explicit NpzWriter(AtomicFile& file, std::uint64_t zip64_from = 0xffffffffu)
      : file_(file), start_(file.size()), zip64_from_(zip64_from) {}

  void add(const std::string& name, const Shape& shape, std::span<const double> data) { add_array(name, shape, data); }
  void add(const std::string& name, const Shape& shape, std::span<const float> data) { add_array(name, shape, data); }
  void add(const std::string& name, const Shape& shape, std::span<const std::complex<double>> data) { add_array(name, shape, data); }
  void add(const std::string& name, const Shape& shape, std::span<const std::int64_t> data) { add_array(name, shape, data); }
  /// UTF-8 texts, as NumPy's array of type <U.
  void add(const std::string& name, std::span<const std::string> texts);
  /// Writes the directory. The caller commits the file.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t offset, size;
    std::uint32_t crc;
  };
  template <class T>
  void add_array(const std::string& name, const Shape& shape, std::span<const T> data) {
    add_bytes(name, npy_header(shape, npy_descr(data.data())), shape, data.data(), data.size(), sizeof(T));
  }
  void add_bytes(const std::string& name, const std::string& header, const Shape& shape, const void* data, std::size_t count,
                 std::size_t width);

  AtomicFile& file_;
  std::uint64_t start_, zip64_from_;
  std::vector<Member> members_;
  std::set<std::string> names_;  ///< each once (asserted)
};

}  // namespace reclab

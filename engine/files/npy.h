// SPDX-License-Identifier: GPL-3.0-or-later
// NumPy's NPY format, versions 1 to 3 (numpy/lib/format.py, NEP 1): one array, with its type, order and shape in a header of Python
// literals.
#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"
#include "array/shape.h"

namespace reclab {

/// An array as read: row-major doubles or complex doubles, for all types and orders in the file. Integers beyond 2^53 are rounded to the
/// nearest double.
struct NpyArray {
  Shape shape;        ///< empty for a scalar
  std::string dtype;  ///< as in the file, "<f4"
  std::vector<double> real;
  std::vector<std::complex<double>> complex;

  bool is_complex() const { return dtype.size() > 1 && dtype[1] == 'c'; }
  /// bool or integers, so that a class number is told from a measurement.
  bool is_integer() const { return dtype.size() > 1 && (dtype[1] == 'i' || dtype[1] == 'u' || dtype[1] == 'b'); }
};

/// The contents of a file's header.
struct NpyHeader {
  Shape shape;
  std::string dtype;                   ///< as in the file
  bool fortran = false;                ///< first index fastest
  char kind = 'f';                     ///< NumPy's letter
  int width = 8;                       ///< bytes of an entry
  std::uint64_t start = 0, bytes = 0;  ///< of the data
};
/// Reads bool, int8-64, uint8-64, float16/32/64 and complex64/128 of both byte orders, C and Fortran order. Errors name the file and the
/// place (header, byte): not NPY, unknown version, a header that cannot be read, objects, text, dates, records, long double, a shape that
/// is absurd, bytes that are missing or left over, an array that would take more memory than most_array_bytes().
NpyArray parse_npy(std::string_view bytes, const std::string& file);
/// Bytes from the start of a file to its data, from the first npy_start of them; 0 for a file that is no NPY file.
constexpr std::size_t npy_start = 12;
std::uint64_t npy_header_bytes(std::string_view start);
/// The entries that an array may have: numbers as above, or any. Of any others than numbers and texts ('U') the width and the bytes are 0.
enum class NpyContent : std::uint8_t { numbers, any };
/// The header alone, from the first npy_header_bytes of a file of so many bytes. Errors of parse_npy.
NpyHeader parse_npy_header(std::string_view bytes, std::uint64_t file_bytes, const std::string& file,
                           NpyContent content = NpyContent::numbers);

/// An array from its data in pieces of any size, so that the data never lies in memory twice.
class NpyReader {
 public:
  NpyReader(NpyHeader header, std::string file);  ///< Error when the array does not fit into memory
  void take(std::string_view piece);              ///< the next bytes; no more than header.bytes in all
  NpyArray finish();                              ///< when all have been taken

 private:
  void convert(const char* from, std::size_t entries);
  NpyHeader header_;
  std::string file_, rest_;  ///< rest_: the beginning of an entry that goes on in the next piece
  NpyArray array_;
  std::size_t filled_ = 0;
};

/// A quarter of this computer's memory: one array of a file may take so much, since a run holds its input several times. A small compressed
/// file could ask for any amount.
std::uint64_t most_array_bytes();
/// Error where an array of this shape (of complex numbers) would take more.
void check_fits(const Shape& shape, bool complex, const std::string& file);
NpyArray read_npy(const std::filesystem::path& file);

/// The header of a version 1 file of row-major data: everything before the data, a multiple of 64 bytes. descr as NumPy writes it: "<f8".
std::string npy_header(const Shape& shape, std::string_view descr);

/// Bytes of an array whose entries have the given width; nothing when no file can hold them (or a size is negative).
std::optional<std::uint64_t> byte_count(const Shape& shape, std::uint64_t width);
/// Numbers of NumPy's kind ('b', 'i', 'u' or 'f') and width in bytes as doubles, their byte order swapped if it is not this machine's;
/// false when there is no such type.
bool to_doubles(char kind, int width, const char* from, std::span<double> to, bool swap);

/// Types that are written, and NumPy's names for them.
constexpr std::string_view npy_descr(const double*) { return "<f8"; }
constexpr std::string_view npy_descr(const float*) { return "<f4"; }
constexpr std::string_view npy_descr(const std::complex<double>*) { return "<c16"; }
constexpr std::string_view npy_descr(const std::complex<float>*) { return "<c8"; }
constexpr std::string_view npy_descr(const std::int64_t*) { return "<i8"; }

/// Writes one array, atomically; the data goes from the span to the disk.
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const double> data);
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const float> data);
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const std::complex<double>> data);
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const std::int64_t> data);

}  // namespace reclab

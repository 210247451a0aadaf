// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/npy.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

#include "array/demand.h"
#include "files/files.h"

namespace reclab {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_dimensions = 64;  // NumPy's own limit
constexpr int widest = 32;                   // complex256, the widest number that NumPy has

/// The fields of the header. dtype is empty when descr is a list of fields.
struct Header {
  std::string dtype;
  bool fortran = false;
  Shape shape;
};

/// The few Python literals that a header is made of: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header parse() {
    Header header;
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header.dtype = descr();
        has_dtype = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = shape();
        has_shape = true;
      } else {
        bad("the key '" + printable(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_dtype || !has_order || !has_shape)
      bad(std::string("no key '") + (!has_dtype ? "descr" : !has_order ? "fortran_order" : "shape") + "'");
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    throw Error(file_ + " has an NPY header that cannot be read (" + what + "): save it again with numpy.save",
                {.file = file_, .place = "header"});
  }
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(std::string("no '") + c + "' at byte " + std::to_string(at_) + " of it");
  }
  std::string string() {
    blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) bad("no text at byte " + std::to_string(at_) + " of it");
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) bad("an open quote");
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    }
    bad("fortran_order is neither True nor False");
  }
  std::string descr() {
    blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      throw Error(file_ + " holds records of several fields: save one array of plain numbers, for example numpy.save(name, a['field'])",
                  {.file = file_, .place = "header"});
    return string();
  }
  Shape shape() {
    Shape result;
    expect('(');
    while (!accept(')')) {
      blanks();
      std::int64_t size = 0;
      const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (code == std::errc::result_out_of_range || (code == std::errc{} && size < 0))
        throw Error(file_ + " claims an absurd shape in its header: the file is damaged, save it again",
                    {.file = file_, .place = "header"});
      if (code != std::errc{}) bad("a shape that is not made of whole numbers");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2 wrote long integers so
      result.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (result.size() > most_dimensions) bad("more than " + std::to_string(most_dimensions) + " dimensions");
    return result;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = 0.0;
  if (exponent == 31)
    value = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else
    value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

template <class T>
T load(const char* from, bool swap) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <class T>
void convert(const char* from, std::span<double> to, bool swap) {
  for (double& value : to) {
    value = static_cast<double>(load<T>(from, swap));
    from += sizeof(T);
  }
}

/// The reason that a type is not read, and the cure.
std::string refusal(char kind, int width) {
  switch (kind) {
    case 'O': return "holds Python objects: save it as numbers, for example numpy.save(name, a.astype(float))";
    case 'S':
    case 'a':
    case 'U': return "holds text: save it as numbers, for example numpy.save(name, a.astype(float))";
    case 'M':
    case 'm': return "holds dates: save it as numbers, for example numpy.save(name, a.astype('int64'))";
    case 'V': return "holds raw records: save it as numbers, for example numpy.save(name, a.astype('float32'))";
    case 'f':
    case 'c':
      return std::string("holds ") + std::to_string(8 * width) + "-bit " + (kind == 'c' ? "complex numbers" : "floats (long double)") +
             ", which differ between machines: save it with .astype('" + (kind == 'c' ? "complex128" : "float64") + "')";
    default: return "has a number type that is not known: save it as numbers, for example numpy.save(name, a.astype(float))";
  }
}

[[noreturn]] void refuse_size(const std::string& file) {
  throw Error(file + " does not fit into memory: save fewer or smaller arrays", {.file = file});
}

/// Fortran order to row-major.
template <class T>
std::vector<T> transposed(const std::vector<T>& columns, const Shape& shape) {
  if (columns.empty()) return {};  // beside a dimension of none the others may be of any length
  std::vector<T> rows(columns.size());
  const std::size_t rank = shape.size();
  std::int64_t index[most_dimensions] = {}, stride[most_dimensions] = {1};
  for (std::size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * shape[d - 1];
  std::int64_t from = 0;
  for (T& value : rows) {
    value = columns[static_cast<std::size_t>(from)];
    for (std::size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return rows;
}

template <class T>
void write(const std::filesystem::path& file, const Shape& shape, std::span<const T> data) {
  RECLAB_DEMAND(count(shape) == static_cast<std::int64_t>(data.size()));
  AtomicFile out(file);
  out.write(npy_header(shape, npy_descr(data.data())));
  out.write(data.data(), data.size_bytes());
  out.commit();
}

}  // namespace

std::optional<std::uint64_t> byte_count(const Shape& shape, std::uint64_t width) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t size : shape) {
    if (size < 0 || width > (std::uint64_t{1} << 62) / static_cast<std::uint64_t>(size)) return {};
    width *= static_cast<std::uint64_t>(size);
  }
  return width;
}

bool to_doubles(char kind, int width, const char* from, std::span<double> to, bool swap) {
  switch (kind * 16 + width) {
    case 'b' * 16 + 1:
      for (double& value : to) value = *from++ != 0;
      return true;
    case 'i' * 16 + 1: convert<std::int8_t>(from, to, swap); return true;
    case 'i' * 16 + 2: convert<std::int16_t>(from, to, swap); return true;
    case 'i' * 16 + 4: convert<std::int32_t>(from, to, swap); return true;
    case 'i' * 16 + 8: convert<std::int64_t>(from, to, swap); return true;
    case 'u' * 16 + 1: convert<std::uint8_t>(from, to, swap); return true;
    case 'u' * 16 + 2: convert<std::uint16_t>(from, to, swap); return true;
    case 'u' * 16 + 4: convert<std::uint32_t>(from, to, swap); return true;
    case 'u' * 16 + 8: convert<std::uint64_t>(from, to, swap); return true;
    case 'f' * 16 + 2:
      for (double& value : to) {
        value = half(load<std::uint16_t>(from, swap));
        from += 2;
      }
      return true;
    case 'f' * 16 + 4: convert<float>(from, to, swap); return true;
    case 'f' * 16 + 8:
      if (swap)
        convert<double>(from, to, swap);
      else if (!to.empty())
        std::memcpy(to.data(), from, to.size_bytes());
      return true;
    default: return false;
  }
}

std::uint64_t npy_header_bytes(std::string_view start) {
  if (start.size() < npy_start || !start.starts_with(magic)) return 0;
  const bool first = start[6] == 1;
  return (first ? 10 : 12) +
         (first ? load<std::uint16_t>(start.data() + 8, false) : std::uint64_t{load<std::uint32_t>(start.data() + 8, false)});
}

NpyHeader parse_npy_header(std::string_view bytes, std::uint64_t file_bytes, const std::string& file, NpyContent content) {
  const auto fail = [&](const std::string& what, const std::string& place) {
    throw Error(file + " " + what, {.file = file, .place = place});
  };
  if (bytes.empty()) fail("is empty: save it again with numpy.save", "byte 0");
  if (!bytes.starts_with(magic.substr(0, std::min(magic.size(), bytes.size()))))
    fail("is not an NPY file: it does not begin with \\x93NUMPY; save it with numpy.save", "byte 0");
  const std::size_t major = bytes.size() > 6 ? static_cast<unsigned char>(bytes[6]) : 1;
  if (major < 1 || major > 3)
    fail("is an NPY file of version " + std::to_string(major) + ", and 1 to 3 are known: save it again with numpy.save", "byte 6");
  const std::size_t start = major == 1 ? 10 : 12;
  const auto short_of = [&](std::uint64_t missing, const std::string& where) {
    fail("is cut short: " + std::to_string(missing) + (missing == 1 ? " byte is" : " bytes are") + " missing " + where +
             "; copy or save it again",
         "byte " + std::to_string(file_bytes));
  };
  if (bytes.size() < start) short_of(start - bytes.size(), "before its header");
  const std::size_t header_size = major == 1 ? load<std::uint16_t>(bytes.data() + 8, false) : load<std::uint32_t>(bytes.data() + 8, false);
  if (file_bytes - start < header_size) short_of(header_size - (file_bytes - start), "from its header");
  const Header text = HeaderParser(bytes.substr(start, header_size), file).parse();

  // descr: byte order, kind, width.
  NpyHeader header{
      .shape = text.shape, .dtype = text.dtype, .fortran = text.fortran, .kind = '\0', .width = 0, .start = start + header_size};
  const std::string& dtype = header.dtype;
  if (dtype.size() >= 2 && std::string_view("<>|=").find(dtype[0]) != std::string_view::npos) {
    header.kind = dtype[1];
    const char* const end = dtype.data() + dtype.size();
    const auto [rest, code] = std::from_chars(dtype.data() + 2, end, header.width);
    const bool number = std::string_view("biufc").find(header.kind) != std::string_view::npos;
    if (number && (code != std::errc{} || rest != end || header.width < 1 || header.width > widest)) header.kind = '\0';
    constexpr int longest_text = 1 << 16, code_point = 4;
    if (header.kind == 'U' && content == NpyContent::any) {
      if (code != std::errc{} || rest != end || header.width < 1 || header.width > longest_text) header.kind = '\0';
      header.width *= header.kind == 'U' ? code_point : 0;
    }
  }
  const bool complex = header.kind == 'c';
  const int part = complex ? header.width / 2 : header.width;  // bytes of one real number
  const bool readable = header.width > 0 && (complex ? header.width == 8 || header.width == 16
                                                     : part <= 8 && to_doubles(header.kind, part, nullptr, {}, false));
  if (content == NpyContent::any && !readable && header.kind != 'U') {
    header.width = 0;
    return header;
  }
  if (content == NpyContent::numbers && !readable)
    fail(refusal(header.kind, header.width) + " (its type is '" + printable(dtype) + "')", "header");

  const std::uint64_t available = file_bytes - header.start;
  const auto bytes_needed = byte_count(header.shape, static_cast<std::uint64_t>(header.width));
  if (!bytes_needed)
    fail("claims an absurd shape in its header, " + to_string(header.shape) + ": the file is damaged, save it again", "header");
  header.bytes = *bytes_needed;
  if (header.bytes > available) short_of(header.bytes - available, "for the shape " + to_string(header.shape) + " of its header");
  if (header.bytes < available)
    fail("has " + std::to_string(available - header.bytes) + " bytes more than the shape " + to_string(header.shape) +
             " of its header needs: save it again with numpy.save",
         "byte " + std::to_string(header.start + header.bytes));
  return header;
}

std::uint64_t most_array_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) / 4 : std::uint64_t{1} << 32;
}

void check_fits(const Shape& shape, bool complex, const std::string& file) {
  const auto bytes = byte_count(shape, complex ? 16 : 8);
  if (!bytes || *bytes > most_array_bytes())
    throw Error(
        file + " of shape " + to_string(shape) + " is larger than a quarter of this computer's memory: save fewer or smaller arrays",
        {.file = file, .place = "header"});
}

NpyReader::NpyReader(NpyHeader header, std::string file)
    : header_(std::move(header)),
      file_(std::move(file)),
      array_{.shape = header_.shape, .dtype = header_.dtype, .real = {}, .complex = {}} {
  const bool complex = header_.kind == 'c';
  check_fits(header_.shape, complex, file_);
  const auto size = static_cast<std::size_t>(header_.bytes / static_cast<std::uint64_t>(header_.width));
  try {
    if (complex)
      array_.complex.resize(size);
    else
      array_.real.resize(size);
  } catch (const std::bad_alloc&) {
    refuse_size(file_);
  }
}

void NpyReader::convert(const char* from, std::size_t entries) {
  const bool complex = header_.kind == 'c';
  const int part = complex ? header_.width / 2 : header_.width;
  const bool swap = header_.dtype[0] == '>' && part > 1;
  // std::complex is two numbers in a row, the real part first (C++20, complex.numbers).
  double* const to = complex ? reinterpret_cast<double*>(array_.complex.data()) : array_.real.data();
  const std::size_t numbers = complex ? 2 : 1;
  to_doubles(complex ? 'f' : header_.kind, part, from, {to + numbers * filled_, numbers * entries}, swap);
  filled_ += entries;
}

void NpyReader::take(std::string_view piece) {
  const auto width = static_cast<std::size_t>(header_.width);
  if (!rest_.empty()) {
    const std::size_t more = std::min(piece.size(), width - rest_.size());
    rest_.append(piece.substr(0, more));
    piece.remove_prefix(more);
    if (rest_.size() < width) return;
    convert(rest_.data(), 1);
    rest_.clear();
  }
  convert(piece.data(), piece.size() / width);
  rest_ = piece.substr(piece.size() / width * width);
}

NpyArray NpyReader::finish() {
  RECLAB_DEMAND(filled_ == std::max(array_.real.size(), array_.complex.size()) && rest_.empty());
  if (!header_.fortran) return std::move(array_);
  try {
    if (header_.kind == 'c')
      array_.complex = transposed(array_.complex, array_.shape);
    else
      array_.real = transposed(array_.real, array_.shape);
  } catch (const std::bad_alloc&) {
    refuse_size(file_);
  }
  return std::move(array_);
}

NpyArray parse_npy(std::string_view bytes, const std::string& file) {
  const NpyHeader header = parse_npy_header(bytes, bytes.size(), file);
  NpyReader reader(header, file);
  reader.take(bytes.substr(header.start));
  return reader.finish();
}

NpyArray read_npy(const std::filesystem::path& file) { return parse_npy(read_file(file), file.string()); }

std::string npy_header(const Shape& shape, std::string_view descr) {
  std::string text = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += std::to_string(shape[d]) + (d + 1 < shape.size() ? ", " : shape.size() == 1 ? "," : "");
  text += "), }";
  // Padded so that the data begins at a multiple of 64.
  text.append(63 - (magic.size() + 4 + text.size()) % 64, ' ');
  text += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const double> data) { write(file, shape, data); }
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const float> data) { write(file, shape, data); }
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const std::complex<double>> data) {
  write(file, shape, data);
}
void write_npy(const std::filesystem::path& file, const Shape& shape, std::span<const std::int64_t> data) { write(file, shape, data); }

}  // namespace reclab

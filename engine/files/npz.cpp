// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "array/demand.h"

namespace reclab {

namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator64_signature = 0x07064b50;
constexpr std::uint64_t full16 = 0xffff, full32 = 0xffffffff;
constexpr std::size_t end_size = 22, locator64_size = 20, end64_size = 56, central_size = 46, local_size = 30;

/// Little-endian numbers from a piece of the archive, in their order.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t take(std::size_t width) {
    RECLAB_DEMAND(at_ + width <= bytes_.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
    at_ += width;
    return value;
  }
  void skip(std::size_t width) { at_ += width; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void put(std::string& to, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i) & 255);
}

std::uint32_t checksum(std::uint32_t crc, const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), size));
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i ? ", " : "") + printable(names[i]);
  if (names.size() > most) text += ", and " + std::to_string(names.size() - most) + " more";
  return text.empty() ? "none" : text;
}

void check_array_name(std::string_view name, const std::string& file) {
  constexpr std::size_t longest = 1000;
  const bool controls = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (controls || name.size() > longest)
    throw Error(file + " holds an array with a name that " +
                    (controls ? "has control characters" : "is longer than " + std::to_string(longest) + " letters") + ", \"" +
                    printable(name) + "\": save it under another",
                {.file = file, .place = printable(name)});
}

// ---- reading

void NpzFile::damaged(const std::string& what) const {
  throw Error(path().string() + " is not a whole NPZ archive (" + what + "): copy or save it again with numpy.savez",
              {.file = path().string()});
}

NpzFile::NpzFile(const std::filesystem::path& file) : file_(file) {
  const std::string name = path().string();
  if (file_.size() == 0) throw Error(name + " is empty: save it again with numpy.savez", {.file = name});
  std::string start(std::min<std::uint64_t>(4, file_.size()), '\0');
  file_.read(0, start.data(), start.size());
  if (!start.starts_with("PK"))
    throw Error(name + " is not an NPZ archive: it does not begin with PK; save it with numpy.savez", {.file = name, .place = "byte 0"});

  // The end record is the last thing in the file, but for a comment of at most 65535 bytes.
  std::string tail(std::min<std::uint64_t>(end_size + full16, file_.size()), '\0');
  const std::uint64_t tail_at = file_.size() - tail.size();
  file_.read(tail_at, tail.data(), tail.size());
  std::size_t end = std::string::npos;
  if (tail.size() >= end_size) end = tail.rfind("PK\x05\x06", tail.size() - end_size);
  if (end == std::string::npos) damaged("its directory is missing, so it is cut short");
  Fields record(std::string_view(tail).substr(end));
  record.skip(10);
  std::uint64_t entries = record.take(2), directory_size = record.take(4), directory = record.take(4);
  std::uint64_t directory_end = tail_at + end;

  if (end >= locator64_size) {
    Fields locator(std::string_view(tail).substr(end - locator64_size, locator64_size));
    if (locator.take(4) == locator64_signature) {
      locator.skip(4);
      const std::uint64_t at = locator.take(8);
      if (at > file_.size() || file_.size() - at < end64_size) damaged("its zip64 directory is missing");
      std::string bytes(end64_size, '\0');
      file_.read(at, bytes.data(), bytes.size());
      Fields record64(bytes);
      if (record64.take(4) != end64_signature) damaged("its zip64 directory is missing");
      record64.skip(28);
      entries = record64.take(8);
      directory_size = record64.take(8);
      directory = record64.take(8);
      directory_end = at;
    }
  }
  if (directory > directory_end || directory_size > directory_end - directory) damaged("its directory reaches beyond its end");

  std::string bytes(directory_size, '\0');
  file_.read(directory, bytes.data(), bytes.size());
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    if (bytes.size() - at < central_size) damaged("its directory is cut short");
    Fields entry(std::string_view(bytes).substr(at, central_size));
    if (entry.take(4) != central_signature) damaged("its directory cannot be read");
    Member member;
    entry.skip(4);
    member.encrypted = entry.take(2) & 1;
    member.method = static_cast<int>(entry.take(2));
    entry.skip(4);
    member.crc = static_cast<std::uint32_t>(entry.take(4));
    member.packed = entry.take(4);
    member.size = entry.take(4);
    const std::size_t name_size = entry.take(2), extra_size = entry.take(2), comment_size = entry.take(2);
    entry.skip(8);
    member.offset = entry.take(4);
    if (bytes.size() - at - central_size < name_size + extra_size + comment_size) damaged("its directory is cut short");
    std::string key = bytes.substr(at + central_size, name_size);
    // Fields beyond 32 bits are in the zip64 extra field, in this order.
    Fields extra(std::string_view(bytes).substr(at + central_size + name_size, extra_size));
    while (extra.left() >= 4) {
      const std::uint64_t id = extra.take(2), size = extra.take(2);
      if (size > extra.left()) damaged("the directory entry of " + printable(key) + " cannot be read");
      std::uint64_t used = 0;
      if (id == 1)
        for (std::uint64_t* field : {&member.size, &member.packed, &member.offset})
          if (*field == full32 && used + 8 <= size) {
            *field = extra.take(8);
            used += 8;
          }
      extra.skip(size - used);
    }
    at += central_size + name_size + extra_size + comment_size;
    if (!key.ends_with(".npy")) continue;
    key.resize(key.size() - 4);
    check_array_name(key, name);
    if (!members_.emplace(key, member).second) damaged("it holds " + printable(key) + " twice");
    names_.push_back(std::move(key));
  }
}

bool NpzFile::has(std::string_view name) const { return members_.find(name) != members_.end(); }

/// The bytes of one member in pieces, unpacked, its checksum looked at when all have passed.
class NpzFile::Pieces {
 public:
  Pieces(const NpzFile& archive, std::string_view name)
      : file_(archive.file_), file_name_(file_.path().string()), name_(name), label_(file_name_ + ": " + printable(name)) {
    const auto found = archive.members_.find(name);
    if (found == archive.members_.end())
      throw Error(file_name_ + " has no array " + printable(name) + ": it has " + some_of(archive.names_),
                  {.file = file_name_, .place = name_});
    member_ = found->second;
    if (member_.encrypted) fail("is encrypted: save it without a password");
    if (member_.method != 0 && member_.method != 8)
      fail("is compressed by method " + std::to_string(member_.method) + ", and only deflate is known: save it with numpy.savez");
    const auto within = [&](std::uint64_t offset, std::uint64_t size) { return offset <= file_.size() && size <= file_.size() - offset; };
    if (!within(member_.offset, local_size)) fail("lies beyond the end of the file" + again);
    std::string local(local_size, '\0');
    file_.read(member_.offset, local.data(), local.size());
    Fields header(local);
    if (header.take(4) != local_signature) fail("is damaged: its local header is missing" + again);
    header.skip(22);
    const std::uint64_t name_size = header.take(2), extra_size = header.take(2);
    at_ = member_.offset + local_size + name_size + extra_size;
    if (!within(at_, member_.packed)) fail("is cut short" + again);
    end_ = at_ + member_.packed;
    // Deflate packs at most 1032 to 1.
    if (member_.method == 0 ? member_.size != member_.packed : member_.size / 1040 > member_.packed + 1)
      fail("claims a false size" + again);
    if (member_.method != 0 && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Pieces() {
    if (member_.method != 0) inflateEnd(&stream_);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  const std::string& label() const { return label_; }
  std::uint64_t size() const { return member_.size; }
  std::uint64_t left() const { return member_.size - given_; }
  /// The next bytes, `most` of them or all that are left; they hold until the next call.
  std::string_view next(std::size_t most) {
    piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, left())));
    if (member_.method == 0) {
      file_.read(at_, piece_.data(), piece_.size());
      at_ += piece_.size();
    } else {
      unpack();
    }
    crc_ = checksum(crc_, piece_.data(), piece_.size());
    given_ += piece_.size();
    if (left() == 0) check_end();
    return piece_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(label_ + " " + what, {.file = file_name_, .place = name_}); }
  [[noreturn]] void fail_unpacking() const { fail("is damaged: it cannot be decompressed" + again); }
  int step() {
    if (stream_.avail_in == 0 && at_ < end_) {
      packed_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, end_ - at_)));
      file_.read(at_, packed_.data(), packed_.size());
      at_ += packed_.size();
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_in = static_cast<uInt>(packed_.size());
    }
    return inflate(&stream_, Z_NO_FLUSH);
  }
  void unpack() {
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    while (stream_.avail_out > 0) {
      const int code = step();
      ended_ = code == Z_STREAM_END;
      if (code != Z_OK && !(ended_ && stream_.avail_out == 0)) fail_unpacking();
    }
  }
  /// The packed data ends where the array does.
  void check_end() {
    Bytef more = 0;
    while (member_.method != 0 && !ended_) {
      stream_.next_out = &more;
      stream_.avail_out = 1;
      const int code = step();
      ended_ = code == Z_STREAM_END;
      if (stream_.avail_out == 0 || (code != Z_OK && !ended_)) fail_unpacking();
    }
    if (crc_ != member_.crc) fail("is damaged: its checksum does not agree" + again);
  }

  static constexpr std::size_t piece_bytes = std::size_t{1} << 18;
  const std::string again = ": copy or save it again with numpy.savez";
  const InputFile& file_;
  std::string file_name_, name_, label_;
  Member member_;
  std::uint64_t at_ = 0, end_ = 0, given_ = 0;  ///< at_, end_: of the packed bytes, in the file
  std::uint32_t crc_ = 0;
  std::string packed_, piece_;
  z_stream stream_{};
  bool ended_ = false;
};

NpyHeader NpzFile::header(Pieces& pieces, NpyContent content) const {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::string start(pieces.next(npy_start));
  try {
    const std::uint64_t bytes = std::min(npy_header_bytes(start), pieces.size());
    while (start.size() < bytes) start += pieces.next(static_cast<std::size_t>(std::min<std::uint64_t>(piece, bytes - start.size())));
    return parse_npy_header(start, pieces.size(), pieces.label(), content);
  } catch (const Error&) {
    // A header that was changed on its way is better explained by the checksum, where that is soon known.
    constexpr std::uint64_t soon = std::uint64_t{1} << 26;
    if (pieces.left() < soon)
      while (pieces.left() > 0) pieces.next(piece);
    throw;
  }
}

NpyHeader NpzFile::header(std::string_view name) const {
  Pieces pieces(*this, name);
  return header(pieces);
}

NpyArray NpzFile::read(std::string_view name) const {
  Pieces pieces(*this, name);
  NpyReader array(header(pieces), pieces.label());
  while (pieces.left() > 0) array.take(pieces.next(std::size_t{1} << 20));
  return array.finish();
}

bool NpzFile::has_texts(std::string_view name) const {
  if (!has(name)) return false;
  Pieces pieces(*this, name);
  const NpyHeader form = header(pieces, NpyContent::any);
  return form.kind == 'U' && form.shape.size() <= 1;
}

std::vector<std::string> NpzFile::texts(std::string_view name) const {
  Pieces pieces(*this, name);
  const NpyHeader form = header(pieces, NpyContent::any);
  const auto fail = [&](const std::string& what) {
    throw Error(pieces.label() + " " + what, {.file = path().string(), .place = std::string(name)});
  };
  constexpr std::uint64_t most = std::uint64_t{1} << 24;
  if (form.kind != 'U' || form.shape.size() > 1) fail("is no list of texts: save it with numpy.array(names, dtype=str)");
  if (form.bytes > most) fail("has more than 16 MiB of text: save shorter names");
  std::string data;
  while (pieces.left() > 0) data += pieces.next(std::size_t{1} << 20);
  const std::size_t entries = static_cast<std::size_t>(count(form.shape)),
                    letters = static_cast<std::size_t>(form.width) / sizeof(char32_t);
  const bool big_endian = form.dtype[0] == '>';
  std::vector<std::string> all(entries);
  for (std::size_t i = 0; i < entries; ++i)
    for (std::size_t k = 0; k < letters; ++k) {
      char32_t point = 0;
      for (std::size_t byte = 0; byte < sizeof(char32_t); ++byte)
        point |= static_cast<char32_t>(static_cast<unsigned char>(data[(i * letters + k) * sizeof(char32_t) + byte]))
                 << 8 * (big_endian ? sizeof(char32_t) - 1 - byte : byte);
      if (point == 0) break;  // texts that are shorter are filled up with these
      if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) fail("has a text that is no Unicode: save it again");
      const auto tail = [&](int shift) { all[i] += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
      if (point < 0x80) {
        all[i] += static_cast<char>(point);
      } else if (point < 0x800) {
        all[i] += static_cast<char>(0xc0 | point >> 6);
        tail(0);
      } else if (point < 0x10000) {
        all[i] += static_cast<char>(0xe0 | point >> 12);
        tail(6), tail(0);
      } else {
        all[i] += static_cast<char>(0xf0 | point >> 18);
        tail(12), tail(6), tail(0);
      }
    }
  return all;
}

// ---- writing

void NpzWriter::add_bytes(const std::string& name, const std::string& header, const Shape& shape, const void* data, std::size_t count_given,
                          std::size_t width) {
  RECLAB_DEMAND(count(shape) == static_cast<std::int64_t>(count_given));
  static_cast<void>(shape);
  const std::size_t bytes = count_given * width;
  Member member{name + ".npy", file_.size() - start_, header.size() + bytes, checksum(0, header.data(), header.size())};
  const bool fresh = names_.insert(name).second;
  RECLAB_DEMAND(fresh);
  static_cast<void>(fresh);
  if (bytes > 0) member.crc = checksum(member.crc, data, bytes);
  const bool large = member.size >= zip64_from_;

  std::string local;
  put(local, local_signature, 4);
  put(local, large ? 45 : 20, 2);  // version needed
  put(local, 1u << 11, 2);         // names are UTF-8
  put(local, 0, 2);                // stored
  put(local, 0x00210000, 4);       // 1980-01-01 00:00, so that the same arrays give the same bytes
  put(local, member.crc, 4);
  put(local, large ? full32 : member.size, 4);
  put(local, large ? full32 : member.size, 4);
  put(local, member.name.size(), 2);
  put(local, large ? 20 : 0, 2);
  local += member.name;
  if (large) {
    put(local, 1, 2);
    put(local, 16, 2);
    put(local, member.size, 8);
    put(local, member.size, 8);
  }
  file_.write(local);
  file_.write(header);
  if (bytes > 0) file_.write(data, bytes);
  members_.push_back(std::move(member));
}

void NpzWriter::add(const std::string& name, std::span<const std::string> texts) {
  std::vector<std::u32string> all;
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    std::u32string& points = all.emplace_back();
    for (std::size_t i = 0; i < text.size();) {
      const auto lead = static_cast<unsigned char>(text[i++]);
      char32_t point = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1fu : lead < 0xf0 ? lead & 0x0fu : lead & 0x07u;
      for (; i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; ++i)
        point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
      points += point;
    }
    longest = std::max(longest, points.size());
  }
  std::u32string data;
  for (std::u32string& points : all) data += points.append(longest - points.size(), U'\0');
  const Shape shape{static_cast<std::int64_t>(texts.size())};
  add_bytes(name, npy_header(shape, "<U" + std::to_string(longest)), shape, data.data(), texts.size(), longest * sizeof(char32_t));
}

void NpzWriter::finish() {
  const std::uint64_t directory = file_.size() - start_;
  for (const Member& member : members_) {
    const bool large = member.size >= zip64_from_, far = member.offset >= zip64_from_;
    std::string entry, extra;
    if (large) {
      put(extra, member.size, 8);
      put(extra, member.size, 8);
    }
    if (far) put(extra, member.offset, 8);
    put(entry, central_signature, 4);
    put(entry, 3u << 8 | 45u, 2);  // made on Unix
    put(entry, large || far ? 45 : 20, 2);
    put(entry, 1u << 11, 2);
    put(entry, 0, 2);
    put(entry, 0x00210000, 4);
    put(entry, member.crc, 4);
    put(entry, large ? full32 : member.size, 4);
    put(entry, large ? full32 : member.size, 4);
    put(entry, member.name.size(), 2);
    put(entry, extra.empty() ? 0 : extra.size() + 4, 2);
    put(entry, 0, 2);               // comment
    put(entry, 0, 4);               // disk, internal attributes
    put(entry, 0100644u << 16, 4);  // a regular file that its owner may write
    put(entry, far ? full32 : member.offset, 4);
    entry += member.name;
    if (!extra.empty()) {
      put(entry, 1, 2);
      put(entry, extra.size(), 2);
      entry += extra;
    }
    file_.write(entry);
  }
  const std::uint64_t end = file_.size() - start_, entries = members_.size(), size = end - directory;
  const bool many = entries >= std::min(full16, zip64_from_), wide = size >= zip64_from_, far = directory >= zip64_from_;
  std::string record;
  if (many || wide || far) {
    put(record, end64_signature, 4);
    put(record, end64_size - 12, 8);
    put(record, 3u << 8 | 45u, 2);
    put(record, 45, 2);
    put(record, 0, 8);  // disks
    put(record, entries, 8);
    put(record, entries, 8);
    put(record, size, 8);
    put(record, directory, 8);
    put(record, locator64_signature, 4);
    put(record, 0, 4);
    put(record, end, 8);
    put(record, 1, 4);
  }
  put(record, end_signature, 4);
  put(record, 0, 4);
  put(record, many ? full16 : entries, 2);
  put(record, many ? full16 : entries, 2);
  put(record, wide ? full32 : size, 4);
  put(record, far ? full32 : directory, 4);
  put(record, 0, 2);
  file_.write(record);
}

}  // namespace reclab

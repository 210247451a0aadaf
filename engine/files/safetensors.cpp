// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "files/json.h"
#include "files/npz.h"

namespace reclab {

namespace {

using Json = nlohmann::json;
constexpr std::uint64_t size_bytes = 8, largest_header = 100'000'000;  // the format's own limit

struct Type {
  std::string_view name, numpy;
  char kind;
  int width;
};
constexpr Type types[] = {{"F64", "<f8", 'f', 8}, {"F32", "<f4", 'f', 4}, {"F16", "<f2", 'f', 2}, {"BF16", "bfloat16", 'B', 2},
                          {"I64", "<i8", 'i', 8}, {"I32", "<i4", 'i', 4}, {"I16", "<i2", 'i', 2}, {"I8", "|i1", 'i', 1},
                          {"U64", "<u8", 'u', 8}, {"U32", "<u4", 'u', 4}, {"U16", "<u2", 'u', 2}, {"U8", "|u1", 'u', 1},
                          {"BOOL", "|b1", 'b', 1}};

const Type* type_of(std::string_view name) {
  const auto found = std::ranges::find(types, name, &Type::name);
  return found == std::end(types) ? nullptr : found;
}

bool is_size(const Json& json) { return json.is_number_unsigned() && json.get<std::uint64_t>() <= std::uint64_t{1} << 62; }
bool are_sizes(const Json& json) { return json.is_array() && std::ranges::all_of(json, is_size); }

}  // namespace

void SafetensorsFile::fail(const std::string& what, const std::string& place) const {
  throw Error(path().string() + " " + what + ": copy or save it again with safetensors.numpy.save_file",
              {.file = path().string(), .place = place});
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file) : file_(file) {
  if (file_.size() == 0) fail("is empty");
  if (file_.size() < size_bytes) fail("is cut short: it has " + std::to_string(file_.size()) + " bytes");
  unsigned char number[size_bytes];
  file_.read(0, number, size_bytes);
  std::uint64_t header_size = 0;
  for (std::size_t i = size_bytes; i-- > 0;) header_size = header_size << 8 | number[i];
  if (header_size > largest_header) fail("is not a safetensors file: its header would have " + std::to_string(header_size) + " bytes");
  if (header_size > file_.size() - size_bytes)
    fail("is cut short: its header has " + std::to_string(header_size) + " bytes and " + std::to_string(file_.size() - size_bytes) +
         " follow");
  std::string header(header_size, '\0');
  file_.read(size_bytes, header.data(), header.size());
  if (!header.starts_with('{')) fail("is not a safetensors file: its header does not begin with {");
  data_ = size_bytes + header_size;
  const std::uint64_t available = file_.size() - data_;

  Json json;
  std::optional<std::string> twice;
  try {
    json = parse_json<Json>(header, twice);
  } catch (const Json::parse_error& error) {
    fail("has a header that is not valid JSON at its byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    fail("has a header with a number that is too large");
  }
  if (twice) fail("has a header that holds " + printable(*twice) + " twice", *twice);

  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") continue;
    check_array_name(name, path().string());
    const auto bad = [&, &key = name](const std::string& what) { fail("is damaged: its entry " + printable(key) + " " + what, key); };
    if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      bad("does not have dtype, shape and data_offsets alone");
    const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    if (!dtype.is_string()) bad("has a dtype that is no text");
    if (!are_sizes(shape)) bad("has a shape that is not a list of sizes");
    if (!are_sizes(offsets) || offsets.size() != 2) bad("has data_offsets that are not two places");
    Entry entry{dtype.get<std::string>(), shape.get<Shape>(), offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
    const Type* type = type_of(entry.dtype);
    if (!type)
      throw Error(path().string() + ": the entry " + printable(name) + " holds " + printable(entry.dtype) +
                      ", which is not read: save it as F32 or F64" +
                      (entry.dtype.starts_with("C") ? ", real and imaginary parts as a last axis of 2" : ""),
                  {.file = path().string(), .place = name, .value = entry.dtype});
    if (entry.from > entry.to) bad("ends before it begins");
    const auto needed = byte_count(entry.shape, static_cast<std::uint64_t>(type->width));
    if (!needed || *needed != entry.to - entry.from)
      bad("of shape " + to_string(entry.shape) + " and type " + entry.dtype + " has " + std::to_string(entry.to - entry.from) + " bytes" +
          (needed ? ", not " + std::to_string(*needed) : ""));
    if (entry.to > available)
      fail("is cut short: " + std::to_string(entry.to - available) + " bytes of " + printable(name) + " are missing", name);
    names_.push_back(name);
    entries_.emplace(name, std::move(entry));
  }

  // In the order of the data each entry begins where the last one ended, and the last one ends the file.
  std::ranges::sort(names_, {}, [&](const std::string& name) { return std::pair(entries_.at(name).from, entries_.at(name).to); });
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Entry& entry = entries_.at(names_[i]);
    if (entry.from < end)
      fail("is damaged: its entries " + printable(names_[i - 1]) + " and " + printable(names_[i]) + " overlap", names_[i]);
    if (entry.from > end)
      fail("is damaged: " + std::to_string(entry.from - end) + " bytes before " + printable(names_[i]) + " belong to no entry", names_[i]);
    end = entry.to;
  }
  if (end < available)
    fail("has " + std::to_string(available - end) + " bytes more than its entries", "byte " + std::to_string(data_ + end));
}

const SafetensorsFile::Entry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw Error(path().string() + " has no array " + printable(name) + ": it has " + some_of(names_),
                {.file = path().string(), .place = std::string(name)});
  return found->second;
}

NpyHeader SafetensorsFile::header(std::string_view name) const {
  const Entry& found = entry(name);
  const Type& type = *type_of(found.dtype);
  return {.shape = found.shape,
          .dtype = std::string(type.numpy),
          .kind = type.kind,
          .width = type.width,
          .start = data_ + found.from,
          .bytes = found.to - found.from};
}

NpyArray SafetensorsFile::read(std::string_view name) const {
  const NpyHeader found = header(name);
  check_fits(found.shape, false, path().string() + ": " + printable(name));
  NpyArray array{.shape = found.shape, .dtype = found.dtype, .real = {}, .complex = {}};
  const auto width = static_cast<std::uint64_t>(found.width);
  try {
    array.real.resize(static_cast<std::size_t>(found.bytes / width));
    std::string bytes;
    constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // bytes, a multiple of every width
    for (std::uint64_t at = 0; at < found.bytes; at += bytes.size()) {
      bytes.resize(static_cast<std::size_t>(std::min(piece, found.bytes - at)));
      file_.read(found.start + at, bytes.data(), bytes.size());
      const std::span<double> to =
          std::span(array.real).subspan(static_cast<std::size_t>(at / width), static_cast<std::size_t>(bytes.size() / width));
      if (found.kind != 'B') {
        to_doubles(found.kind, found.width, bytes.data(), to, false);
        continue;
      }
      for (std::size_t i = 0; i < to.size(); ++i) {  // the upper half of a float32
        std::uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        to[i] = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16));
      }
    }
  } catch (const std::bad_alloc&) {
    throw Error(path().string() + ": " + printable(name) + " does not fit into memory: save fewer or smaller arrays",
                {.file = path().string(), .place = std::string(name)});
  }
  return array;
}

void write_safetensors(AtomicFile& file, const std::vector<SafetensorsEntry>& entries, bool single) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  const std::uint64_t width = single ? 4 : 8;
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::uint64_t bytes = entry.values.size() * width;
    header[entry.name] = {{"dtype", single ? "F32" : "F64"}, {"shape", entry.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + size_bytes - 1) / size_bytes * size_bytes, ' ');
  const std::uint64_t size = text.size();
  file.write(&size, sizeof size);
  file.write(text);
  for (const SafetensorsEntry& entry : entries) {
    if (!single) {
      file.write(entry.values.data(), entry.values.size() * width);
      continue;
    }
    for (const double value : entry.values) {
      const auto narrow = static_cast<float>(value);
      file.write(&narrow, sizeof narrow);
    }
  }
}

}  // namespace reclab

// SPDX-License-Identifier: GPL-3.0-or-later
// NPY, NPZ, safetensors and SHA-256. The golden bytes were made by NumPy 2.4.6, Python's zipfile and
// safetensors 0.8.0 with the lines beside them.
#include <zlib.h>

#include <array>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "files/archive.h"
#include "files/files.h"
#include "files/npy.h"
#include "files/npz.h"
#include "files/safetensors.h"
#include "safetensors.h"
#include "scratch.h"
#include "sentences.h"
#include "test.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::check_says;
using reclab::test::listing;
using reclab::test::safetensors;
using reclab::test::safetensors_entry;
using reclab::test::Scratch;
using reclab::test::sentence_of;

namespace {

std::string unhex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

/// A version 1 file with the header as given.
std::string npy(std::string header, const std::string& data) {
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return bytes + header + data;
}
std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data, const char* fortran = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }", data);
}

// numpy.save of [[1., -2., 3.5]]
const char* const saved_f8 =
    "934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a20"
    "28312c2033292c207d202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "202020202020200a000000000000f03f00000000000000c00000000000000c40";

// numpy.savez_compressed(f, **{'a': arange(3.), '0/b': [[1+2j]]}): deflated, with zip64 fields in the local headers
const char* const saved_npz =
    "504b03042d0000000800000021002421e12bffffffffffffffff05001400612e6e70790100100098000000000000004c000000000000009bec17ea1b"
    "10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14"
    "002e0614f0c11eca700000504b03042d0000000800000021008b9bec7dffffffffffffffff07001400302f622e6e7079010010009000000000000000"
    "4f000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e936c68a6aea3a09e965f54529498179f5f94920a92704bcc294e058a1767"
    "2416a402f91a863a0a869a3a0ab50ae4022e0630f8600fa1191c00504b01022d032d0000000800000021002421e12b4c000000980000000500000000"
    "00000000000000800100000000612e6e7079504b01022d032d0000000800000021008b9bec7d4f000000900000000700000000000000000000008001"
    "83000000302f622e6e7079504b05060000000002000200680000000b0100000000";

// zipfile.writestr of NPY arrays: names [3] of type >U5, one [] and square [1, 1] of <U1, n [2] of <f8, wrong [1] of <U1, which is 0xd800
const char* const saved_texts =
    "504b030414000000080000002100edd6622d5b000000bc000000090000006e616d65732e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a0"
    "6e176aaaaea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e06ecc01d888b80f81b10df07e254"
    "06c6cf5b817405b22200504b030414000000080000002100f669278f4600000084000000070000006f6e652e6e70799bec17ea1b10c9c850c650ad9e"
    "925a9c5ca46ea5a06e136aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a9a3a0ab50a1401ae1206060600504b03"
    "0414000000080000002100ee55688a4900000090000000050000006e2e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a0"
    "9e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e0614f0c11e00504b03041400000008000000210087"
    "e16aa64a000000840000000a0000007371756172652e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e136aa8aea3a09e965f54529498"
    "179f5f94920a12774bcc294e058a17672416a402f91a863a0a869a3a0ab50a6403ae4406060600504b030414000000080000002100c4502836480000"
    "00840000000900000077726f6e672e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e136aa8aea3a09e965f54529498179f5f94920a12"
    "774bcc294e058a17672416a402f91a863a9a3a0ab50a14002e861b0c0c00504b0102140314000000080000002100edd6622d5b000000bc0000000900"
    "000000000000000000008001000000006e616d65732e6e7079504b0102140314000000080000002100f669278f460000008400000007000000000000"
    "00000000008001820000006f6e652e6e7079504b0102140314000000080000002100ee55688a49000000900000000500000000000000000000008001"
    "ed0000006e2e6e7079504b010214031400000008000000210087e16aa64a000000840000000a00000000000000000000008001590100007371756172"
    "652e6e7079504b0102140314000000080000002100c450283648000000840000000900000000000000000000008001cb01000077726f6e672e6e7079"
    "504b050600000000050005000e0100003a0200000000";

// zipfile into something that cannot seek, x.npy = arange(2.): deflated, with a data descriptor
const char* const saved_descriptor =
    "504b03041400080008000000210000000000000000000000000005000000782e6e70799bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1"
    "aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14002e0614f0c11e00504b0708ee55688a49000000"
    "90000000504b0102140314000800080000002100ee55688a4900000090000000050000000000000000000000800100000000782e6e7079504b050600"
    "00000001000100330000007c0000000000";

// safetensors 0.8.0: save({"0/b": arange(3.).astype("f4"), "param/a": [[1., -2., 3.5]], "s": int64(7), "none": zeros((0, 4))},
// metadata={"format": "np", "by": "x"})
const char* const saved_safetensors =
    "10010000000000007b225f5f6d657461646174615f5f223a7b226279223a2278222c22666f726d6174223a226e70227d2c2273223a7b226474797065"
    "223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c226e6f6e65223a7b226474797065223a224636"
    "34222c227368617065223a5b302c345d2c22646174615f6f666673657473223a5b382c385d7d2c22706172616d2f61223a7b226474797065223a2246"
    "3634222c227368617065223a5b312c335d2c22646174615f6f666673657473223a5b382c33325d7d2c22302f62223a7b226474797065223a22463332"
    "222c227368617065223a5b335d2c22646174615f6f666673657473223a5b33322c34345d7d7d20200700000000000000000000000000f03f00000000"
    "000000c00000000000000c40000000000000803f00000040";

constexpr double infinity = std::numeric_limits<double>::infinity();

struct TypeCase {
  const char *dtype, *data;
  std::vector<double> values;  ///< shape (2, 3); for complex numbers real and imaginary parts in turn
};

// a.astype(dtype).tobytes().hex()
const TypeCase types[] = {
    {"|b1", "010001000101", {1, 0, 1, 0, 1, 1}},
    {"|i1", "01fe03fc0564", {1, -2, 3, -4, 5, 100}},
    {"<i2", "0100feff0300fcff0500d08a", {1, -2, 3, -4, 5, -30000}},
    {">i2", "0001fffe0003fffc00058ad0", {1, -2, 3, -4, 5, -30000}},
    {"<i4", "01000000feffffff03000000fcffffff05000000006cca88", {1, -2, 3, -4, 5, -2000000000}},
    {">i4", "00000001fffffffe00000003fffffffc0000000588ca6c00", {1, -2, 3, -4, 5, -2000000000}},
    {"<i8",
     "0100000000000000feffffffffffffff0300000000000000fcffffffffffffff0500000000000000000000000000e0ff",
     {1, -2, 3, -4, 5, -9007199254740992.0}},
    {">i8",
     "0000000000000001fffffffffffffffe0000000000000003fffffffffffffffc0000000000000005ffe0000000000000",
     {1, -2, 3, -4, 5, -9007199254740992.0}},
    {"|u1", "0102030405fa", {1, 2, 3, 4, 5, 250}},
    {"<u2", "01000200030004000500e8fd", {1, 2, 3, 4, 5, 65000}},
    {">u2", "00010002000300040005fde8", {1, 2, 3, 4, 5, 65000}},
    {"<u4", "010000000200000003000000040000000500000000286bee", {1, 2, 3, 4, 5, 4000000000}},
    {">u4", "0000000100000002000000030000000400000005ee6b2800", {1, 2, 3, 4, 5, 4000000000}},
    {"<u8", "010000000000000002000000000000000300000000000000040000000000000005000000000000000000000000000080", {1, 2, 3, 4, 5, 0x1p63}},
    {">u8", "000000000000000100000000000000020000000000000003000000000000000400000000000000058000000000000000", {1, 2, 3, 4, 5, 0x1p63}},
    {"<f2", "003c00c0662e0100ff7b007c", {1, -2, 0.0999755859375, 0x1p-24, 65504, infinity}},
    {">f2", "3c00c0002e6600017bff7c00", {1, -2, 0.0999755859375, 0x1p-24, 65504, infinity}},
    {"<f4", "0000803f000020c0000200000000008000008071000080ff", {1, -2.5, 0x1p-140, -0.0, 0x1p100, -infinity}},
    {">f4", "3f800000c0200000000002008000000071800000ff800000", {1, -2.5, 0x1p-140, -0.0, 0x1p100, -infinity}},
    {"<f8",
     "000000000000f03f00000000000004c000000000000030370000000000000080ea8ca039593e2946000000000000f0ff",
     {1, -2.5, 0x1p-140, -0.0, 1e30, -infinity}},
    {">f8",
     "3ff0000000000000c0040000000000003730000000000000800000000000000046293e5939a08ceafff0000000000000",
     {1, -2.5, 0x1p-140, -0.0, 1e30, -infinity}},
    {"<c8",
     "0000803f0000004000000080000040c00000003f0000000000008040000080be0000a040000000000000c0c00000e040",
     {1, 2, -0.0, -3, 0.5, 0, 4, -0.25, 5, 0, -6, 7}},
    {">c8",
     "3f8000004000000080000000c04000003f0000000000000040800000be80000040a0000000000000c0c0000040e00000",
     {1, 2, -0.0, -3, 0.5, 0, 4, -0.25, 5, 0, -6, 7}},
    {"<c16",
     "000000000000f03f0000000000000040000000000000008000000000000008c0000000000000e03f0000000000000000"
     "0000000000001040000000000000d0bf0000000000001440000000000000000000000000000018c00000000000001c40",
     {1, 2, -0.0, -3, 0.5, 0, 4, -0.25, 5, 0, -6, 7}},
    {">c16",
     "3ff000000000000040000000000000008000000000000000c0080000000000003fe00000000000000000000000000000"
     "4010000000000000bfd000000000000040140000000000000000000000000000c018000000000000401c000000000000",
     {1, 2, -0.0, -3, 0.5, 0, 4, -0.25, 5, 0, -6, 7}},
};

// numpy array.astype(...).tobytes().hex(), shape (2, 3); BF16 by ml_dtypes
const TypeCase safetensors_types[] = {
    {"F64",
     "000000000000f03f00000000000000800000000000000cc0000000000000d03f0000000000fcef400000000000001cc0",
     {1, -0.0, -3.5, 0.25, 65504, -7}},
    {"F32", "0000803f00000080000060c00000803e00e07f470000e0c0", {1, -0.0, -3.5, 0.25, 65504, -7}},
    {"F16", "003c008000c30034ff7b00c7", {1, -0.0, -3.5, 0.25, 65504, -7}},
    {"I64", "01000000000000000200000000000000fdffffffffffffff00000000000000006400000000000000f9ffffffffffffff", {1, 2, -3, 0, 100, -7}},
    {"I32", "0100000002000000fdffffff0000000064000000f9ffffff", {1, 2, -3, 0, 100, -7}},
    {"I16", "01000200fdff00006400f9ff", {1, 2, -3, 0, 100, -7}},
    {"I8", "0102fd0064f9", {1, 2, -3, 0, 100, -7}},
    {"U64", "010000000000000002000000000000000300000000000000000000000000000064000000000000000700000000000000", {1, 2, 3, 0, 100, 7}},
    {"U32", "010000000200000003000000000000006400000007000000", {1, 2, 3, 0, 100, 7}},
    {"U16", "010002000300000064000700", {1, 2, 3, 0, 100, 7}},
    {"U8", "010203006407", {1, 2, 3, 0, 100, 7}},
    {"BOOL", "010101000101", {1, 1, 1, 0, 1, 1}},
    {"BF16", "803f008060c0803e8047e0c0", {1, -0.0, -3.5, 0.25, 65536, -7}},
};

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("SHA-256 gives the published digests") {
  // FIPS 180-4 examples, and the million letters a of the same suite.
  CHECK_EQUAL(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQUAL(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQUAL(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const std::string million(1'000'000, 'a');
  const std::string digest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  CHECK_EQUAL(sha256_hex(million), digest);
  Sha256 pieces;  // in pieces that never fall on a block's end
  for (std::size_t at = 0; at < million.size(); at += 37)
    pieces.update(million.data() + at, std::min<std::size_t>(37, million.size() - at));
  CHECK_EQUAL(pieces.hex(), digest);
  Scratch scratch;
  CHECK_EQUAL(sha256_of_file(scratch.file("a", million)), digest);
}

TEST_CASE("NPY of every numeric type and byte order is read exactly") {
  for (const TypeCase& type : types) {
    const NpyArray array = parse_npy(npy_of(type.dtype, "(2, 3)", unhex(type.data)), "x.npy");
    CHECK_EQUAL(to_string(array.shape), "[2, 3]");
    CHECK_EQUAL(array.dtype, type.dtype);
    CHECK_EQUAL(array.is_complex(), type.dtype[1] == 'c');
    CHECK_EQUAL(array.is_integer(), std::string("biu").find(type.dtype[1]) != std::string::npos);
    std::vector<double> values = array.real;
    for (const auto& z : array.complex) values.insert(values.end(), {z.real(), z.imag()});
    CHECK_EQUAL(values.size(), type.values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK_SAYS(same_bits(values[i], type.values[i]),
                 std::string(type.dtype) + " entry " + std::to_string(i) + " is " + test::show(values[i]));
  }
}

TEST_CASE("NPY half floats keep subnormals, signs and NaN") {
  const NpyArray array = parse_npy(npy_of("<f2", "(4,)", unhex("007e00807f3c0102")), "x.npy");
  CHECK(std::isnan(array.real[0]));
  CHECK(array.real[1] == 0.0 && std::signbit(array.real[1]));
  CHECK_EQUAL(array.real[2], 1.0 + 127.0 / 1024.0);
  CHECK_EQUAL(array.real[3], 513.0 * 0x1p-24);
}

TEST_CASE("NPY as NumPy writes it: versions 1 to 3, Fortran order, scalars, empty arrays") {
  const NpyArray saved = parse_npy(unhex(saved_f8), "x.npy");
  CHECK_EQUAL(to_string(saved.shape), "[1, 3]");
  CHECK(saved.real == (std::vector<double>{1.0, -2.0, 3.5}));
  // write_array(f, asfortranarray(arange(6.).reshape(2, 3)))
  const NpyArray fortran = parse_npy(
      unhex("934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a20547275652c20277368617065273a2028"
            "322c2033292c207d20202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
            "202020202020200a00000000000000000000000000000840000000000000f03f000000000000104000000000000000400000000000001440"),
      "x.npy");
  CHECK(fortran.real == (std::vector<double>{0, 1, 2, 3, 4, 5}));
  // asfortranarray(arange(24).reshape(2, 3, 4).astype('i1'))
  const NpyArray cube = parse_npy(npy_of("|i1", "(2, 3, 4)", unhex("000c04100814010d05110915020e06120a16030f07130b17"), "True"), "x.npy");
  std::vector<double> counted(24);
  std::iota(counted.begin(), counted.end(), 0.0);
  CHECK(cube.real == counted);
  // write_array(f, array([1.5, 2.5]), (2, 0)) and, as float32, (3, 0)
  const NpyArray second = parse_npy(
      unhex("934e554d50590200740000007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c73652c2027736861706527"
            "3a2028322c292c207d202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
            "202020202020200a000000000000f83f0000000000000440"),
      "x.npy");
  CHECK(second.real == (std::vector<double>{1.5, 2.5}));
  const NpyArray third = parse_npy(
      unhex("934e554d50590300740000007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c2027736861706527"
            "3a2028322c292c207d202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
            "202020202020200a0000c03f00002040"),
      "x.npy");
  CHECK(third.real == (std::vector<double>{1.5, 2.5}));
  const NpyArray scalar = parse_npy(npy_of("<f8", "()", unhex("0000000000000a40")), "x.npy");
  CHECK(scalar.shape.empty());
  CHECK_EQUAL(scalar.real.at(0), 3.25);
  const NpyArray none = parse_npy(npy_of("<f8", "(0, 9223372036854775807, 3)", ""), "x.npy");
  CHECK_EQUAL(none.real.size(), 0u);
  // In Fortran order too, where a step from one column to the next would be past the largest number.
  const NpyArray across = parse_npy(npy_of("|i1", "(0, 4611686018427387904, 4)", "", "True"), "x.npy");
  CHECK_EQUAL(to_string(across.shape), "[0, 4611686018427387904, 4]");
  CHECK(across.real.empty());
  // Written by Python 2: long integers, another order of keys, no comma at the end.
  const NpyArray old = parse_npy(npy("{'shape': (2L,), 'fortran_order': False, 'descr': \"<u1\"}", "\x01\x02"), "x.npy");
  CHECK(old.real == (std::vector<double>{1, 2}));
}

TEST_CASE("NPY that is damaged or of another kind is refused with file, place and cure") {
  const std::string good = unhex(saved_f8);
  const auto says = [&](const std::string& bytes) { return sentence_of([&] { parse_npy(bytes, "dir/x.npy"); }); };
  check_says(says(""), {"dir/x.npy", "empty", "numpy.save"});
  check_says(says("a,b\n1,2\n"), {"dir/x.npy", "not an NPY file", "numpy.save"});
  check_says(says(good.substr(0, 4)), {"dir/x.npy is cut short", "missing"});
  check_says(says(good.substr(0, 50)), {"dir/x.npy is cut short: 78 bytes are missing from its header"});
  check_says(says(good.substr(0, good.size() - 1)), {"dir/x.npy is cut short: 1 byte is missing", "[1, 3]", "again"});
  check_says(says(good.substr(0, good.size() - 9)), {"9 bytes are missing"});
  check_says(says(good + "abc"), {"3 bytes more", "numpy.save"});
  std::string version = good;
  version[6] = 7;
  check_says(says(version), {"version 7", "1 to 3"});
  check_says(says(npy_of("|O", "(3,)", "whatever")), {"dir/x.npy holds Python objects", "astype(float)", "'|O'"});
  check_says(says(npy_of("<U4", "(3,)", "whatever")), {"text", "astype(float)"});
  check_says(says(npy_of("|S4", "(2,)", "whatever")), {"text"});
  check_says(says(npy_of("<M8[s]", "(1,)", "whatever")), {"dates", "astype('int64')"});
  check_says(says(npy_of("<f16", "(1,)", "whateverwhatever")), {"long double", "astype('float64')"});
  check_says(says(npy_of("<c32", "(1,)", "whateverwhatever")), {"256-bit complex", "astype('complex128')"});
  check_says(says(npy_of("|V2", "(4,)", "whatever")), {"records", "astype('float32')"});
  check_says(says(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "")),
             {"records of several fields", "a['field']"});
  check_says(says(npy_of("<f8", "(4611686018427387904, 4611686018427387904)", "12345678")), {"absurd shape", "damaged"});
  check_says(says(npy_of("<f8", "(99999999999999999999,)", "12345678")), {"absurd shape"});
  check_says(says(npy_of("<f8", "(-1,)", "12345678")), {"absurd shape"});
  check_says(says(npy_of("<f8", "(1000000000000,)", "12345678")), {"7999999999992 bytes are missing"});
  check_says(says(npy("{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,), }", "12345678")),
             {"header that cannot be read", "fortran_order"});
  check_says(says(npy("{'descr': '<f8', 'shape': (1,), }", "12345678")), {"no key 'fortran_order'"});
  check_says(says(npy("garbage \x01\x02", "12345678")), {"header that cannot be read", "numpy.save"});
  check_says(says(npy_of("<q9", "(1,)", "12345678")), {"not known", "'<q9'"});
  // Widths that no number has; in bits they do not fit into an int.
  for (const char* type : {"<f1111111112", "<f", "<f-8", "<f8x", "<f64", "<c268435460"})
    check_says(says(npy_of(type, "(0,)", "")), {"a number type that is not known", type});
  check_says(
      says(unhex(
          "934e554d5059010076007b276465736372273a20273c6339313131313131313104040404040404040404043131310e00000031313131e1e1e131313131313131"
          "317b313138272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028302c292c207d20202020200000144000000000000018"
          "40")),
      {"a number type that is not known"});
  // No prefix of a good file and no single damaged byte of its header may do worse than an Error or a smaller array.
  for (std::size_t size = 0; size < good.size(); ++size) says(good.substr(0, size));
  for (std::size_t at = 0; at < 128; ++at)
    for (const char byte : {'\0', '9', '(', '\'', '\xff'}) {
      std::string bytes = good;
      bytes[at] = byte;
      try {
        CHECK(parse_npy(bytes, "x.npy").real.size() <= 3);
      } catch (const Error&) {
      }
    }
}

TEST_CASE("NPY is written as NumPy writes it") {
  Scratch scratch;
  const std::vector<double> data{1.0, -2.0, 3.5};
  write_npy(scratch / "a.npy", {1, 3}, std::span<const double>(data));
  CHECK(bytes_of_file(scratch / "a.npy") == unhex(saved_f8));
  const std::vector<float> single{1.5f, -0.0f};
  write_npy(scratch / "f.npy", {2}, std::span<const float>(single));
  CHECK(read_npy(scratch / "f.npy").real == (std::vector<double>{1.5, -0.0}));
  const std::vector<std::complex<double>> complex{{1, 2}, {3, -4}};
  write_npy(scratch / "c.npy", {2, 1}, std::span<const std::complex<double>>(complex));
  CHECK(read_npy(scratch / "c.npy").complex == complex);
  const std::vector<std::int64_t> whole{-5};
  write_npy(scratch / "i.npy", {}, std::span<const std::int64_t>(whole));
  CHECK_EQUAL(read_npy(scratch / "i.npy").real.at(0), -5.0);
  CHECK(read_npy(scratch / "i.npy").shape.empty());
  CHECK_EQUAL(listing(scratch.path()).size(), 4u);
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{1234567, 89, 1, 2, 3}, Shape(40, 1)}) {
    CHECK_EQUAL(npy_header(shape, "<c16").size() % 64, 0u);
    CHECK_EQUAL(npy_header(shape, "<c16").back(), '\n');
  }
}

TEST_CASE("NPZ as NumPy and zipfile write it is read: deflated, zip64, data descriptors") {
  Scratch scratch;
  const NpzFile archive(scratch.file("a.npz", unhex(saved_npz)));
  CHECK_EQUAL(archive.names().size(), 2u);
  CHECK_EQUAL(archive.names()[1], "0/b");
  CHECK(archive.has("a") && !archive.has("b"));
  CHECK(archive.read("a").real == (std::vector<double>{0, 1, 2}));
  CHECK(archive.read("0/b").complex == (std::vector<std::complex<double>>{{1, 2}}));
  const NpzFile streamed(scratch.file("d.npz", unhex(saved_descriptor)));
  CHECK(streamed.read("x").real == (std::vector<double>{0, 1}));
  // With a comment at the end.
  std::string commented = unhex(saved_npz);
  commented[commented.size() - 2] = 5;
  CHECK_EQUAL(NpzFile(scratch.file("c.npz", commented + "hello")).names().size(), 2u);
}

TEST_CASE("NPZ reads back what it writes, with and without zip64") {
  Scratch scratch;
  std::vector<double> real(1000);
  for (std::size_t i = 0; i < real.size(); ++i) real[i] = std::sin(static_cast<double>(i));
  const std::vector<std::complex<double>> complex{{0.1, -0.2}};
  const std::vector<std::int64_t> whole{1, 2, 3};
  for (const std::uint64_t zip64_from : {std::uint64_t{0xffffffff}, std::uint64_t{1000}, std::uint64_t{0}}) {
    const auto file = scratch / ("w" + std::to_string(zip64_from) + ".npz");
    AtomicFile out(file);
    NpzWriter writer(out, zip64_from);
    writer.add("state/0/h", {10, 100}, std::span<const double>(real));
    writer.add("λ", {1}, std::span<const std::complex<double>>(complex));
    writer.add("n", {3}, std::span<const std::int64_t>(whole));
    writer.add("none", {0, 4}, std::span<const double>());
    writer.finish();
    out.commit();
    const NpzFile archive(file);
    CHECK_EQUAL(archive.names().size(), 4u);
    CHECK(archive.read("state/0/h").real == real);
    CHECK_EQUAL(to_string(archive.read("state/0/h").shape), "[10, 100]");
    CHECK(archive.read("λ").complex == complex);
    CHECK_EQUAL(archive.read("n").dtype, "<i8");
    CHECK_EQUAL(to_string(archive.read("none").shape), "[0, 4]");
  }
}

TEST_CASE("NPZ has lists of texts, of both byte orders") {
  Scratch scratch;
  const std::vector<std::string> texts{"", "Größe", "🎵x"};
  const NpzFile saved(scratch.file("saved.npz", unhex(saved_texts)));
  CHECK(saved.has_texts("names") && saved.has_texts("one") && !saved.has_texts("n") && !saved.has_texts("square") && !saved.has_texts("m"));
  CHECK(saved.texts("names") == texts);
  CHECK(saved.texts("one") == std::vector<std::string>{"t"});
  CHECK_ERROR(saved.texts("n"), "n is no list of texts");
  CHECK_ERROR(saved.texts("square"), "square is no list of texts");
  CHECK_ERROR(saved.texts("wrong"), "wrong has a text that is no Unicode");
  CHECK_ERROR(saved.texts("m"), "has no array m");
  CHECK_ERROR(saved.read("names"), "holds text");
  const std::string good = unhex(saved_texts);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    try {
      const NpzFile archive(scratch.file("x.npz", bytes));
      for (const auto& name : archive.names())
        if (archive.has_texts(name)) archive.texts(name);
    } catch (const Error&) {
    }
  }
  AtomicFile out(scratch / "ours.npz");
  NpzWriter writer(out);
  writer.add("names", std::span<const std::string>(texts));
  writer.finish();
  out.commit();
  CHECK(NpzFile(scratch / "ours.npz").texts("names") == texts);
}

TEST_CASE("NPZ holds more arrays than 16 bits count") {
  Scratch scratch;
  AtomicFile out(scratch / "many.npz");
  NpzWriter writer(out);
  for (int i = 0; i < 66'000; ++i) {
    const double value = i;
    writer.add(std::to_string(i), {}, std::span<const double>(&value, 1));
  }
  writer.finish();
  out.commit();
  const NpzFile archive(scratch / "many.npz");
  CHECK_EQUAL(archive.names().size(), 66'000u);
  CHECK_EQUAL(archive.read("65999").real.at(0), 65999.0);
}

TEST_CASE("NPZ that is damaged or of another kind is refused with file, member and cure") {
  Scratch scratch;
  const std::string good = unhex(saved_npz);
  const auto says = [&](const std::string& bytes, const std::string& key = "a") {
    const auto file = scratch.file("x.npz", bytes);
    return sentence_of([&] { NpzFile(file).read(key); });
  };
  check_says(says(""), {"x.npz", "empty"});
  check_says(says("hello, world"), {"x.npz is not an NPZ archive", "numpy.savez"});
  check_says(says(good.substr(0, good.size() - 30)), {"x.npz is not a whole NPZ archive", "cut short", "again"});
  check_says(says(good, "b"), {"x.npz has no array b", "it has a, 0/b"});
  std::string damaged = good;
  damaged[80] ^= 1;  // within the deflated bytes of a
  check_says(says(damaged), {"x.npz: a is damaged", "again"});
  std::string method = good;
  method[method.find("PK\x01\x02") + 10] = 12;  // bzip2
  check_says(says(method), {"x.npz: a", "method 12", "numpy.savez"});
  std::string secret = good;
  secret[secret.find("PK\x01\x02") + 8] = 1;
  check_says(says(secret), {"x.npz: a is encrypted", "password"});
  std::string bomb = good;
  bomb.replace(bomb.find("PK\x01\x02") + 24, 4, "\xff\xff\xff\x7f");
  check_says(says(bomb), {"false size"});
  // Stored, so that a damaged byte is found by its checksum alone.
  const std::vector<double> data{1, 2, 3};
  {
    AtomicFile out(scratch / "s.npz");
    NpzWriter writer(out);
    writer.add("a", {3}, std::span<const double>(data));
    writer.finish();
    out.commit();
  }
  std::string stored = bytes_of_file(scratch / "s.npz");
  stored[30 + 5 + 128 + 3] ^= 1;
  check_says(says(stored), {"x.npz: a", "checksum"});
  for (std::size_t size = 0; size < good.size(); ++size) says(good.substr(0, size));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    try {
      const NpzFile archive(scratch.file("x.npz", bytes));
      for (const auto& name : archive.names()) archive.read(name);
    } catch (const Error&) {
    }
  }
}

TEST_CASE("of a compressed array of any size the shape is known at once, and what does not fit is refused before it is unpacked") {
  Scratch scratch;
  const auto deflated = [](const std::string& start, std::uint64_t zeros) {
    std::string out;
    z_stream stream{};
    CHECK_EQUAL(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    std::uint32_t crc = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(start.data()), static_cast<uInt>(start.size())));
    const std::string block(1 << 20, '\0');
    std::string buffer(1 << 16, '\0');
    const auto put = [&](const char* data, std::size_t size, int flush) {
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data));
      stream.avail_in = static_cast<uInt>(size);
      do {
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        deflate(&stream, flush);
        out.append(buffer, 0, buffer.size() - stream.avail_out);
      } while (stream.avail_out == 0);
    };
    put(start.data(), start.size(), Z_NO_FLUSH);
    for (std::uint64_t i = 0; i < zeros / block.size(); ++i) {
      put(block.data(), block.size(), Z_NO_FLUSH);
      crc = static_cast<std::uint32_t>(crc32(crc, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(block.size())));
    }
    put(nullptr, 0, Z_FINISH);
    deflateEnd(&stream);
    return std::pair(out, crc);
  };
  const auto archive = [&](const std::string& name, const std::string& packed, std::uint64_t size, std::uint32_t crc) {
    std::string local, central, end;
    const auto put = [](std::string& to, std::uint64_t value, int width) {
      for (int i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i) & 255);
    };
    put(local, 0x04034b50, 4), put(local, 45, 2), put(local, 0, 2), put(local, 8, 2), put(local, 0, 4), put(local, crc, 4);
    put(local, packed.size(), 4), put(local, 0xffffffff, 4), put(local, 5, 2), put(local, 0, 2);
    put(central, 0x02014b50, 4), put(central, 45, 2), put(central, 45, 2), put(central, 0, 2), put(central, 8, 2), put(central, 0, 4),
        put(central, crc, 4);
    put(central, packed.size(), 4), put(central, 0xffffffff, 4), put(central, 5, 2), put(central, 12, 2), put(central, 0, 2),
        put(central, 0, 2), put(central, 0, 2);
    put(central, 0, 4), put(central, 0, 4);
    central += "a.npy";
    put(central, 1, 2), put(central, 8, 2), put(central, size, 8);
    put(end, 0x06054b50, 4), put(end, 0, 4), put(end, 1, 2), put(end, 1, 2), put(end, central.size(), 4),
        put(end, local.size() + 5 + packed.size(), 4), put(end, 0, 2);
    return scratch.file(name, local + "a.npy" + packed + central + end);
  };
  const auto header = [](std::uint64_t entries) { return npy_header({static_cast<std::int64_t>(entries)}, "|b1"); };
  const std::uint64_t many = std::uint64_t{64} << 20;
  const auto [packed, crc] = deflated(header(many), many);
  const NpzFile whole(archive("whole.npz", packed, header(many).size() + many, crc));
  CHECK_EQUAL(to_string(whole.header("a").shape), to_string(Shape{static_cast<std::int64_t>(many)}));
  CHECK_EQUAL(Archive(scratch / "whole.npz").shape("a").at(0), static_cast<std::int64_t>(many));
  const NpyArray read = whole.read("a");
  CHECK(read.real.size() == many && read.real.front() == 0.0 && read.real.back() == 0.0);

  // As much as deflate can claim for these bytes: the rest of them is never looked at.
  const std::uint64_t more = most_array_bytes() / 8 + 1;
  const std::string junk = deflated(header(more), 0).first + std::string(static_cast<std::size_t>(more / 1000), 'x');
  const NpzFile bomb(archive("bomb.npz", junk, header(more).size() + more, 0));
  CHECK_EQUAL(bomb.header("a").shape.at(0), static_cast<std::int64_t>(more));
  check_says(sentence_of([&] { bomb.read("a"); }), {"bomb.npz: a of shape [", "larger than a quarter of this computer's memory"});
}

TEST_CASE("names out of a file stand in sentences whole, short and with their control characters written out") {
  Scratch scratch;
  CHECK_EQUAL(printable(std::string("a\0b\nc\x7f", 6)), "a\\x00b\\x0ac\\x7f");
  CHECK_EQUAL(printable(std::string(65'000, 'x')), std::string(80, 'x') + "...");
  std::string cut = printable(std::string(79, 'x') + "λλ");
  CHECK_EQUAL(cut, std::string(79, 'x') + "λ...");
  CHECK_EQUAL(printable(std::string(500, '\x80')).size(), 86u);
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back(std::string(65'000, static_cast<char>('a' + i)));
  CHECK(some_of(names).size() < 800);
  const std::string entry = "{\"a\\u0000b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(entry.size() >> (8 * i) & 255);
  check_says(sentence_of([&] { SafetensorsFile(scratch.file("nul.safetensors", bytes + entry + "12345678")); }),
             {"a name that has control characters, \"a\\x00b\"", "save it under another"});
  const std::vector<double> one{1};
  for (const std::string& name : {std::string(1001, 'x'), std::string("a\nb"), std::string(1000, 'x')}) {
    AtomicFile out(scratch / "names.npz");
    NpzWriter writer(out);
    writer.add(name, {1}, std::span<const double>(one));
    writer.finish();
    out.commit();
    if (name.size() == 1000) {
      CHECK(NpzFile(scratch / "names.npz").has(name));
      continue;
    }
    const std::string sentence = sentence_of([&] { NpzFile(scratch / "names.npz"); });
    check_says(sentence, {"names.npz holds an array with a name that ",
                          name.size() > 1000 ? "is longer than 1000 letters" : "has control characters"});
    CHECK(sentence.size() < 300);
  }
}

TEST_CASE("a header of many entries is read in time that grows with it") {
  Scratch scratch;
  std::string header = "{";
  constexpr int entries = 40'000;  // a hundred seconds, when each entry was looked at for each
  for (int i = 0; i < entries; ++i)
    header += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]}";
  header += "}";
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  const auto start = std::chrono::steady_clock::now();
  CHECK_EQUAL(SafetensorsFile(scratch.file("many.safetensors", bytes + header)).names().size(), static_cast<std::size_t>(entries));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK_SAYS(seconds < 10.0, std::to_string(seconds));
}

TEST_CASE("safetensors of every numeric type is read exactly") {
  Scratch scratch;
  for (const TypeCase& type : safetensors_types) {
    const std::string data = unhex(type.data);
    const SafetensorsFile file(
        scratch.file("x.safetensors", safetensors("{" + safetensors_entry("a", type.dtype, "[2,3]", 0, data.size()) + "}", data)));
    const NpyArray array = file.read("a");
    CHECK_EQUAL(to_string(array.shape), "[2, 3]");
    CHECK(!array.is_complex());
    CHECK_EQUAL(array.is_integer(), std::string("IUBOOL").find(type.dtype[0]) != std::string::npos && type.dtype != std::string("BF16"));
    for (std::size_t i = 0; i < 6; ++i)
      CHECK_SAYS(same_bits(array.real.at(i), type.values[i]),
                 std::string(type.dtype) + " entry " + std::to_string(i) + " is " + test::show(array.real[i]));
  }
}

TEST_CASE("safetensors as its own library writes it, told from NPZ by its content") {
  Scratch scratch;
  for (const char* name : {"a.safetensors", "a.npz", "a"}) {
    const Archive file(scratch.file(name, unhex(saved_safetensors)));
    CHECK(file.names() == (std::vector<std::string>{"s", "none", "param/a", "0/b"}));  // the order of the data; no metadata
    CHECK(file.read("param/a").real == (std::vector<double>{1, -2, 3.5}));
    CHECK_EQUAL(to_string(file.read("param/a").shape), "[1, 3]");
    CHECK(file.read("0/b").real == (std::vector<double>{0, 1, 2}));
    CHECK(file.read("s").shape.empty() && file.read("s").real == std::vector<double>{7} && file.read("s").is_integer());
    CHECK_EQUAL(to_string(file.read("none").shape), "[0, 4]");
    CHECK(file.has("s") && !file.has("__metadata__"));
    check_says(sentence_of([&] { file.read("b"); }), {name, "no array b", "it has s, none, param/a, 0/b"});
  }
  for (const char* name : {"b.safetensors", "b.npz", "b"}) CHECK_EQUAL(Archive(scratch.file(name, unhex(saved_npz))).names().size(), 2u);
  check_says(sentence_of([&] { Archive(scratch.file("c", "a,b\n1,2\n3,4\n")); }),
             {"c is neither an NPZ archive nor a safetensors file", "numpy.savez", "save_file"});
  check_says(sentence_of([&] { Archive(scratch / "none.safetensors"); }), {"there is no file", "none.safetensors"});
  check_says(sentence_of([&] { Archive(scratch.file("d.npz", "a,b\n1,2\n3,4\n")); }), {"d.npz is not an NPZ archive"});
  CHECK_EQUAL(archive_format_names(), "NPZ or safetensors");
  CHECK(archive_suffixes() == (std::vector<std::string>{".npz", ".safetensors"}));
  CHECK(!Archive::recognises(scratch / "c") && Archive::recognises(scratch / "b") && Archive::recognises(scratch / "a"));
}

TEST_CASE("safetensors that is damaged or of another kind is refused with file, entry and cure") {
  Scratch scratch;
  const auto says = [&](const std::string& bytes) { return sentence_of([&] { SafetensorsFile(scratch.file("x.safetensors", bytes)); }); };
  const auto entry = [](const std::string& name, std::size_t from, std::size_t to, const std::string& shape = "[1]") {
    return safetensors_entry(name, "F64", shape, from, to);
  };
  const auto header = [&](const std::string& json, std::size_t bytes) { return says(safetensors(json, std::string(bytes, '\0'))); };
  const std::string a = entry("a", 0, 8);
  check_says(says(""), {"x.safetensors is empty", "save_file"});
  check_says(says("abc"), {"x.safetensors is cut short", "3 bytes", "again"});
  check_says(says(safetensors("{}", "").replace(0, 1, "\x03")), {"cut short: its header has 3 bytes and 2 follow"});
  check_says(says("hello, world"), {"x.safetensors is not a safetensors file", "save_file"});
  check_says(says(std::string(8, '\0')), {"does not begin with {"});
  check_says(header("[1]", 0), {"does not begin with {"});
  check_says(header("{" + a, 8), {"header that is not valid JSON at its byte"});
  check_says(header("{" + a + "} x", 8), {"not valid JSON"});
  check_says(header("{\"a\":1e999}", 0), {"too large"});
  check_says(header("{" + a + "," + entry("a", 8, 16) + "}", 16), {"holds a twice"});
  check_says(header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,8]}}", 8), {"holds shape twice"});
  check_says(header("{\"a\":[0,8]}", 8), {"its entry a does not have dtype, shape and data_offsets"});
  check_says(header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1]}}", 8), {"its entry a does not have dtype, shape and data_offsets"});
  check_says(header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8],\"more\":1}}", 8), {"data_offsets alone"});
  check_says(header("{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,8]}}", 8), {"its entry a has a dtype that is no text"});
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "1", "[99999999999999999999]", "null"})
    check_says(header("{" + entry("a", 0, 8, shape) + "}", 8), {"its entry a has a shape that is not a list of sizes"});
  check_says(header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8,8]}}", 8),
             {"its entry a has data_offsets that are not two places"});
  check_says(header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[-8,0]}}", 8),
             {"its entry a has data_offsets that are not two places"});
  check_says(header("{" + entry("a", 8, 0) + "}", 8), {"its entry a ends before it begins"});
  check_says(header("{" + entry("a", 0, 8, "[2]") + "}", 8), {"its entry a of shape [2] and type F64 has 8 bytes, not 16"});
  check_says(header("{" + entry("a", 0, 8, "[4611686018427387904,4611686018427387904]") + "}", 8),
             {"its entry a of shape [4611686018427387904, 4611686018427387904]", "8 bytes"});
  check_says(header("{" + a + "}", 7), {"cut short: 1 bytes of a are missing"});
  check_says(header("{" + a + "}", 9), {"1 bytes more than its entries"});
  check_says(header("{" + a + "," + entry("b", 4, 12) + "}", 12), {"its entries a and b overlap"});
  check_says(header("{" + a + "," + entry("b", 0, 8) + "}", 8), {"its entries a and b overlap"});
  check_says(header("{" + a + "," + entry("b", 9, 17) + "}", 17), {"1 bytes before b belong to no entry"});
  check_says(header("{" + safetensors_entry("a", "F8_E4M3", "[8]", 0, 8) + "}", 8),
             {"x.safetensors: the entry a holds F8_E4M3", "save it as F32"});
  check_says(header("{" + safetensors_entry("a", "C64", "[1]", 0, 8) + "}", 8), {"C64", "real and imaginary parts as a last axis of 2"});
  std::string huge = safetensors("{}", "");
  huge[7] = '\x7f';
  check_says(says(huge), {"its header would have 9151314442816847874 bytes"});
  CHECK_EQUAL(SafetensorsFile(scratch.file("e.safetensors", safetensors("{}   ", ""))).names().size(), 0u);  // padded, and empty
  // No prefix of a good file and no damaged byte of it may do worse than an Error or another number.
  const std::string good = unhex(saved_safetensors);
  for (std::size_t size = 0; size < good.size(); ++size) says(good.substr(0, size));
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int flip : {1, 0x55, 0x80}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      try {
        const SafetensorsFile file(scratch.file("x.safetensors", bytes));
        for (const auto& name : file.names()) CHECK(file.read(name).real.size() <= 24);
      } catch (const Error&) {
      }
    }
}

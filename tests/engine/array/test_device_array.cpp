// SPDX-License-Identifier: GPL-3.0-or-later
// The owner of device memory, on a device that counts what it gave and has only so much.
#include <cstdlib>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "array/device_array.h"
#include "array/error.h"
#include "autodiff/ops.h"
#include "host_machine.h"
#include "recurrence/attention/attention.h"
#include "test.h"

namespace {

using namespace reclab;

struct Given {
  std::size_t most = std::size_t{1} << 40, bytes = 0;
  int times = 0;
  std::map<void*, std::size_t> pieces;
} given;

class CountingMachine : public test::HostMachine {
 public:
  void* allocate(std::size_t bytes) {
    if (given.bytes + bytes > given.most) throw Error("The device has not enough memory: choose device cpu.");
    void* memory = HostMachine::allocate(bytes);
    given.pieces[memory] = bytes;
    given.bytes += bytes;
    ++given.times;
    return memory;
  }
  void release(void* memory) noexcept {
    const auto found = given.pieces.find(memory);
    if (found == given.pieces.end()) std::abort();  // given back twice, or never given
    given.bytes -= found->second;
    given.pieces.erase(found);
    HostMachine::release(memory);
  }
};

kernel::KernelBackend<CountingMachine>& device() {
  static kernel::KernelBackend<CountingMachine> backend;
  given.most = std::size_t{1} << 40;
  return backend;
}

template <class F>
bool throws(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("memory of a device is given back once, whoever had it last") {
  static_assert(!std::is_copy_constructible_v<DeviceArray> && !std::is_copy_assignable_v<DeviceArray>);
  static_assert(std::is_nothrow_move_constructible_v<DeviceArray> && std::is_nothrow_move_assignable_v<DeviceArray>);
  Backend& backend = device();
  const std::size_t before = given.bytes;
  {
    DeviceArray a(backend, DType::f32, 10), b(backend, DType::c128, 3);
    CHECK_EQUAL(given.bytes, before + 40 + 48);
    CHECK(a.entries() == 10 && a.bytes() == 40 && b.entries() == 3 && b.bytes() == 48);
    CHECK(static_cast<char*>(b.at(2)) == static_cast<char*>(b.data()) + 32);
    void* const memory = b.data();
    a = std::move(b);  // what a had is given back now, not with b
    CHECK_EQUAL(given.bytes, before + 48);
    CHECK(a.data() == memory && a.entries() == 3 && !b && b.bytes() == 0);
    DeviceArray c(std::move(a));
    CHECK(c.data() == memory && !a);
    std::vector<DeviceArray> many;
    for (int i = 0; i < 9; ++i) many.emplace_back(backend, DType::f64, i);  // they move as the list grows
    CHECK_EQUAL(given.pieces.size(), std::size_t{10});                      // those and c
    b = DeviceArray(backend, DType::f64, 0);
    CHECK(b && b.entries() == 0);
  }
  CHECK_EQUAL(given.bytes, before);
}

TEST_CASE("memory that is large enough serves again, and a larger one is asked for when the smaller is back") {
  Backend& backend = device();
  DeviceArray array(backend, DType::f64, 8);
  void* const memory = array.data();
  const int times = given.times;
  CHECK(array.resize(backend, DType::f32, 16) == memory);
  CHECK(array.entries() == 16 && array.bytes() == 64 && array.capacity() == 64);
  CHECK(array.resize(backend, DType::f32, 2) == memory);
  CHECK(array.bytes() == 8 && array.capacity() == 64);
  CHECK_EQUAL(given.times, times);
  const std::size_t others = given.bytes - 64;
  given.most = others + 100;
  array.resize(backend, DType::f32, 25);  // 64 and 100 would not fit side by side
  CHECK_EQUAL(given.bytes, others + 100);
}

TEST_CASE("an array that could not grow is empty, and smaller ones are asked for anew") {
  Backend& backend = device();
  DeviceArray array(backend, DType::f64, 8);
  given.most = given.bytes + 100;
  CHECK(throws([&] { array.resize(backend, DType::f64, 1000); }));
  CHECK(!array && array.bytes() == 0 && array.capacity() == 0 && array.entries() == 0);
  CHECK(array.resize(backend, DType::f64, 4) != nullptr);
  CHECK(array.entries() == 4);
}

TEST_CASE("an operation that met the end of the memory works when there is some again, and keeps none") {
  Backend& backend = device();
  const std::size_t before = given.bytes;
  {
    Graph graph(DType::f64);
    SoftmaxAttention a;
    std::vector<DeviceArray> values;
    a.q = graph.leaf(LeafKind::variable, {1, 200, 4}, DType::f64);
    a.k = graph.leaf(LeafKind::variable, {1, 200, 4}, DType::f64);
    a.v = graph.leaf(LeafKind::variable, {1, 200, 3}, DType::f64);
    const Var read = softmax_attention(a, false);
    graph.allocate(backend, true);
    for (const Var leaf : {a.q, a.k, a.v}) {
      values.emplace_back(backend, DType::f64, count(leaf.shape()));
      backend.zero(values.back().data(), values.back().bytes());
      graph.bind(leaf, values.back().data());
    }
    given.most = given.bytes + 64 * 100 * sizeof(double);  // the first block of rows fits, the second does not
    CHECK(throws([&] { graph.forward(); }));
    given.most = std::size_t{1} << 40;
    graph.forward();
    graph.clear_gradients();
    graph.backward();
    const double* out = static_cast<const double*>(graph.value(read));
    for (int i = 0; i < 600; ++i) CHECK_EQUAL(out[i], 0.0);
  }
  CHECK_EQUAL(given.bytes, before);
}

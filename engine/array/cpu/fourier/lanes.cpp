// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "array/cpu/fourier/fourier.h"
#include "array/cpu/fourier/groups.h"
#include "array/cpu/fourier/lane_transform.h"
#include "array/demand.h"
#include "array/stop.h"

namespace reclab::cpu {
namespace {

using Index = std::int64_t;
constexpr Index fewest_points = 16;

Index points_of(Index steps) { return std::max(fewest_points, transform_size(steps) / 2); }

template <class T>
const LaneTransform<T>& transform(Index steps) {
  static std::mutex making;
  static auto& known = *new std::map<Index, LaneTransform<T>>;  // to the end of the process, when other threads may still compute
  const Index points = points_of(steps);
  const std::lock_guard lock(making);
  return known.try_emplace(points, points).first->second;
}

/// `n` neighbouring numbers as the first lanes of a vector, 0 in the others.
template <class T>
typename LaneTransform<T>::V load(const T* from, Index n) {
  typename LaneTransform<T>::V v{};
  std::memcpy(&v, from, static_cast<std::size_t>(n) * sizeof(T));
  return v;
}
template <class T>
void store(T* to, Index n, typename LaneTransform<T>::V v) {
  std::memcpy(to, &v, static_cast<std::size_t>(n) * sizeof(T));
}

template <class T>
class ByLanes final : public Convolution<T> {
  using Transform = LaneTransform<T>;
  using V = typename Transform::V;
  using Point = typename Transform::Point;
  using Points = typename Transform::Points;
  static constexpr Index lanes = Transform::lanes;

 public:
  Index spectrum_size(Index steps, Index channels) const override {
    return (channels + lanes - 1) / lanes * 4 * (points_of(steps) / 2 + 1) * lanes;
  }
  Index scratch(Index steps, bool adjoint) const override {
    return thread_count() * ((adjoint ? 3 : 1) * Points::entries(points_of(steps)) + Points::entries(2 * (points_of(steps) / 2 + 1)));
  }
  void spectrum(Index steps, Index channels, const T* kernel, T* spectrum) const override {
    const Transform& t = transform<T>(steps);
    each_group<lanes>(channels, [&](Index c, auto n) {
      const Points z(t.points);
      transform_kernel(t, steps, kernel + c * steps, n, z.data(), spectrum + c / lanes * t.spectrum_size());
    });
  }
  void convolve(Index steps, Index batch, Index channels, const T* kernel, const T* spectrum, const T* u, T* y) const override {
    const Transform& t = transform<T>(steps);
    each_group<lanes>(channels, [&](Index c, auto n) {
      const Points z(t.points);
      const Kernel k(t, steps, channels, kernel, spectrum, c, n, z.data());
      for (Index b = 0; b < batch; ++b) {
        check_stop();
        const Index first = b * channels + c, row = batch * channels;
        t.there(steps, [&](Index step) { return load(u + first + step * row, n); }, z.data());
        t.each_pair([&](Index number, Index place, Index mirrored) {
          auto pair = t.unpacked(number, z.data()[place], z.data()[mirrored]);
          pair.at = t.times(pair.at, k.at(2 * number));
          pair.mirrored = t.times(pair.mirrored, k.at(2 * number + 1));
          t.template pack<false>(number, pair, z.data()[place], z.data()[mirrored]);
        });
        t.back(steps, z.data(), [&](Index step, V value) { store(y + first + step * row, n, value); });
      }
    });
  }
  void adjoint(Index steps, Index batch, Index channels, const T* kernel, const T* spectrum, const T* u, const T* gy, T* gkernel,
               T* gu) const override {
    const Transform& t = transform<T>(steps);
    each_group<lanes>(channels, [&](Index c, auto n) {
      const Points x(t.points), g(t.points), sum(gkernel ? t.points : 0);
      const Kernel k(t, steps, channels, kernel, spectrum, c, n, x.data());
      if (gkernel) std::fill_n(sum.data(), t.points, Point{});
      for (Index b = 0; b < batch; ++b) {
        check_stop();
        const Index first = b * channels + c, row = batch * channels;
        t.there(steps, [&](Index step) { return load(gy + first + step * row, n); }, g.data());
        if (gkernel) t.there(steps, [&](Index step) { return load(u + first + step * row, n); }, x.data());
        t.each_pair([&](Index number, Index place, Index mirrored) {
          auto pair = t.unpacked(number, g.data()[place], g.data()[mirrored]);
          if (gkernel) {
            const auto of_x = t.unpacked(number, x.data()[place], x.data()[mirrored]);
            t.template pack<true>(number, {t.times_conjugate(pair.at, of_x.at), t.times_conjugate(pair.mirrored, of_x.mirrored)},
                                  sum.data()[place], sum.data()[mirrored]);
          }
          if (!gu) return;
          pair.at = t.times_conjugate(pair.at, k.at(2 * number));
          pair.mirrored = t.times_conjugate(pair.mirrored, k.at(2 * number + 1));
          t.template pack<false>(number, pair, g.data()[place], g.data()[mirrored]);
        });
        if (gu)
          t.back(steps, g.data(), [&](Index step, V value) {
            T* to = gu + first + step * row;
            store(to, n, load(to, n) + value);
          });
      }
      if (!gkernel) return;
      const T unit = T(1) / static_cast<T>(8 * t.points);
      t.back(steps, sum.data(), [&](Index step, V value) {
        for (Index lane = 0; lane < n; ++lane) gkernel[(c + lane) * steps + step] += unit * value[lane];
      });
    });
  }

 private:
  /// The spectrum of `n` channels' kernels, in the units in which a product with an unpacked spectrum gives the convolution.
  static void transform_kernel(const Transform& t, Index steps, const T* kernel, Index n, Point* z, T* spectrum) {
    const auto read = [&](Index step) {
      V v{};
      for (Index lane = 0; lane < n; ++lane) v[lane] = kernel[lane * steps + step];
      return v;
    };
    t.there(steps, read, z);
    const T unit = T(1) / static_cast<T>(8 * t.points);
    t.each_pair([&](Index number, Index place, Index mirrored) {
      const auto pair = t.unpacked(number, z[place], z[mirrored]);
      const Point scaled[] = {t.scaled(pair.at, unit), t.scaled(pair.mirrored, unit)};
      std::memcpy(spectrum + 4 * number * lanes, scaled, sizeof scaled);
    });
  }

  /// The spectra of a group's kernels: those that are there, or made here.
  class Kernel {
   public:
    Kernel(const Transform& t, Index steps, Index channels, const T* kernel, const T* spectrum, Index c, Index n, Point* z)
        : made_(spectrum ? 0 : 2 * t.pairs()), from_(spectrum ? spectrum + c / lanes * t.spectrum_size() : nullptr) {
      RECLAB_DEMAND(c < channels);
      if (from_) return;
      transform_kernel(t, steps, kernel + c * steps, n, z, reinterpret_cast<T*>(made_.data()));
      from_ = reinterpret_cast<const T*>(made_.data());
    }
    Point at(Index i) const {
      Point point;
      std::memcpy(&point, from_ + 2 * i * lanes, sizeof point);
      return point;
    }

   private:
    Points made_;
    const T* from_;
  };
};

}  // namespace

template <class T>
const Convolution<T>& convolution_by_lanes() {
  static const ByLanes<T> only;
  return only;
}
template const Convolution<float>& convolution_by_lanes();
template const Convolution<double>& convolution_by_lanes();

template <class T>
const Convolution<T>& Convolution<T>::of(std::int64_t steps, std::int64_t channels) {
  return 2 * channels >= LaneTransform<T>::lanes && 2 * steps > fewest_points ? convolution_by_lanes<T>() : convolution_by_rows<T>();
}
template class Convolution<float>;
template class Convolution<double>;

}  // namespace reclab::cpu

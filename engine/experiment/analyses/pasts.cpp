// SPDX-License-Identifier: GPL-3.0-or-later
// The reconstructions of signals' pasts from states, compared with those pasts (Layer::reconstruction).
#include <algorithm>
#include <chrono>

#include "experiment/record/analysis.h"
#include "experiment/record/reconstruction.h"

namespace reclab {
namespace {

class Pasts final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::signal, Kind::basis, Kind::reconstruction}; }
  bool of_states() const override {
    return std::ranges::any_of(record_.shape_network().histories(), [this](const Network::HistoryVar& past) { return wanted(past); });
  }
  void plan() override {
    auto& notes = record_.trace.info.notes;
    for (const auto& past : record_.shape_network().histories())
      if (const std::string said = Reconstruction::note(past, record_.length(), continued());
          !said.empty() && wanted(past) && std::ranges::find(notes, said) == notes.end())
        notes.push_back(said);
  }
  double bytes_a_row() const override {
    double bytes = 0.0;
    for (const auto& past : record_.shape_network().histories())
      if (wanted(past)) bytes += 8.0 * static_cast<double>(Reconstruction::row_size(past));
    return bytes;
  }
  void begin(const Network& network) override {
    for (std::size_t i = 0; i < network.histories().size(); ++i) {
      if (!wanted(network.histories()[i])) continue;
      histories_.emplace_back(network, i, std::ssize(record_.trace.steps), continued());
      histories_.back().measure(record_.prepared.parameters);
    }
  }
  void forward(const Rollout::Segment& segment) override {
    const auto start = std::chrono::steady_clock::now();
    for (Reconstruction& past : histories_) past.add(segment, [this](std::int64_t t) { return record_.is_recorded(t); }, record_.stop);
    record_.excluded_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void finish(std::int64_t rows) override {
    for (const Reconstruction& past : histories_)
      past.put(record_.trace, rows, [this](std::string_view key) { return record_.wants(key); });
    histories_.clear();
  }

 private:
  bool continued() const { return !record_.request.state.empty(); }
  bool wanted(const Network::HistoryVar& past) const {
    return std::ranges::any_of(std::initializer_list<Kind>{Kind::signal, Kind::basis, Kind::reconstruction},
                               [&](Kind kind) { return record_.wants(key_of(kind, past.layer, past.state)); });
  }
  std::vector<Reconstruction> histories_;
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> pasts(Record& record) { return std::make_unique<Pasts>(record); }
}  // namespace analyses
}  // namespace reclab

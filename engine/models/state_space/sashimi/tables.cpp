// SPDX-License-Identifier: GPL-3.0-or-later
// The tables, reference names and values of the layers that SaShiMi is put together from.
#include <algorithm>

#include "models/parts/layers/low_rank_layer.h"
#include "models/state_space/sashimi/parameters.h"

namespace reclab::architectures {

Architecture s4d();

namespace sashimi_parts {
namespace {

std::vector<HyperSpec> rows_of_layer(std::vector<HyperSpec> own) {
  for (HyperSpec& row : common_rows()) own.push_back(std::move(row));
  return own;
}
/// The names of a layer's own parameters in the reference, and those of its norm and of the norm after the last layer.
std::vector<ReferenceName> with_norms(std::vector<ReferenceName> own) {
  for (const ReferenceName& row :
       {ReferenceName{"{path}.norm.*", "norm.*"}, ReferenceName{"{path}.norm.norm.*", "norm.*"}, ReferenceName{"norm.*", "final/norm.*"}})
    own.push_back(row);
  return own;
}

}  // namespace

std::vector<HyperSpec> common_rows() {
  return {hyper_choice("code", "standalone", {"standalone", "full"},
                       "Whose parameters: standalone keeps maps as convolutions of one tap, [out, in, 1]; full has no tap, weight norm in "
                       "the pooling stages and, with transposed, block norms with one scale and one shift."),
          hyper_flag("transposed", true,
                     "Of the full code: whether its blocks have the norm of arrays that are kept transposed, (x − mean + m) s/deviation."),
          hyper_flag("prenorm", true, "Whether the norm of a block comes before its layer (after the residual otherwise)."),
          hyper_choice("act_pool", "none", {"none", "gelu", "relu", "tanh", "elu", "silu", "sigmoid", "softplus", "glu"},
                       "What follows the map of a pooling stage.")};
}
bool is_diagonal(const Hyper& h) { return h.choice("mode") == "diag"; }

std::vector<std::int64_t> pools(const Hyper& h) {
  std::vector<std::int64_t> found;
  for (const char* key : {"pool1", "pool2", "pool3", "pool4"})
    if (const std::int64_t p = h.integer(key)) found.push_back(p);
  return found;
}

const Architecture& s4_system() {
  static const Architecture made = [] {
    Architecture a;
    parts::make_low_rank_layer(a, {.id = "sashimi", .read = parts::low_rank_modes});
    return a;
  }();
  return made;
}

const Architecture& s4d_system() {
  static const Architecture made = s4d();
  return made;
}

std::vector<HyperSpec> system_rows() {
  std::vector<HyperSpec> rows = parts::low_rank_layer_hyper(false);
  const std::vector<HyperSpec> of_diagonal = s4d_system().hyper;
  for (const char* key : {"discretisation", "imag_transform", "dt_fast", "bandlimit", "B_init"}) {
    rows.push_back(*std::ranges::find(of_diagonal, key, &HyperSpec::key));
    rows.back().text = "Of mode = diag: " + rows.back().text;
  }
  for (HyperSpec& row : rows) {
    if (row.key == "init") {
      for (const char* more : {"lin", "inv", "inv2", "quad", "real", "rand"}) row.choices.push_back(more);
      row.text =
          "What A and B start as: the measure legs, legt, lagt or fourier of HiPPO (see s4), with mode = diag legs or one of the others "
          "(see s4d).";
    }
  }
  std::erase_if(rows, [](const HyperSpec& row) {
    return row.key == "width" || row.key == "layers" || row.key == "output" || row.key == "block" || row.key == "prenorm";
  });
  for (HyperSpec& row : rows) {
    if (row.key == "state") row.standard = std::int64_t{16};
    if (row.key == "l_kernel")
      row.text =
          "Length that the reference's kernels were made for at the rate of the sequence, where C is its C̃; at slower rates it is divided "
          "by their steps; 0: C is the readout itself.";
  }
  return rows;
}

Architecture s4_block_card() {
  Architecture a;
  a.id = "s4";
  a.hyper = rows_of_layer(parts::low_rank_layer_hyper(false));
  std::erase_if(a.hyper, [](const HyperSpec& row) { return row.key == "prenorm"; });
  for (const HyperSpec& row : common_rows())
    if (row.key == "prenorm") a.hyper.push_back(row);
  a.spectrum = "eigenvalues of the discretised transition Ā of every channel, all N of them, the same at every step of the layer";
  a.reference = with_norms({{"{path}.layer.layer.kernel.l_kernel", ""},
                            {"{path}.layer.kernel.kernel.l_kernel", ""},
                            {"kernel.l_kernel", ""},
                            {"{path}.layer.layer.kernel.*", "*"},
                            {"{path}.layer.layer.D", "D"},
                            {"{path}.layer.kernel.kernel.*", "*"},
                            {"{path}.layer.D", "D"},
                            {"{path}.layer.output_linear.0.*", "output_linear.*"}});
  return a;
}
Architecture s4d_block_card() {
  Architecture a = s4_block_card();
  a.id = "s4d";
  a.hyper = s4d_system().hyper;
  for (HyperSpec row : common_rows()) {
    if (row.key == "prenorm") continue;
    if (row.key == "code") row.key = "around";
    a.hyper.push_back(row);
  }
  a.spectrum = "the discretised transition Ā of every channel (one of each conjugate pair), the same at every step of the layer";
  return a;
}
Architecture feed_forward_card() {
  Architecture a;
  a.id = "feed-forward";
  a.hyper = rows_of_layer({hyper_integer("ff", "", 2, 1, 64, "")});
  a.spectrum = "none: a feed-forward block carries nothing from step to step";
  a.reference = with_norms({{"{path}.layer.ff.0.0.*", "ff.0.*"}, {"{path}.layer.ff.2.*", "ff.2.*"}});
  return a;
}
Architecture stage_card(const char* id) {
  Architecture a;
  a.id = id;
  a.hyper = rows_of_layer({hyper_integer("pool", "", 4, 1, 32, ""), hyper_integer("out", "", 1, 1, 1 << 30, "")});
  a.spectrum = "none: a pooling stage waits for its window and holds its value, and no matrix takes one state to the next";
  a.reference = with_norms({{"{path}.linear.*", "linear.*"}, {"{path}.linear.0.*", "linear.*"}});
  return a;
}

Hyper hyper_of(const Hyper& h, const std::vector<HyperSpec>& table, const std::vector<std::pair<const char*, HyperValue>>& own) {
  Hyper values(table);
  for (const HyperSpec& row : table)
    if (h.has(row.key) && std::ranges::none_of(own, [&](const auto& one) { return row.key == one.first; }))
      values.set(row.key, h.value(row.key), "sashimi");
  for (const auto& [key, value] : own) values.set(key, value, "sashimi");
  return values;
}
Hyper hyper_of_s4(const Hyper& h, std::int64_t width, std::int64_t stride) {
  static const std::vector<HyperSpec> of_s4 = s4_block_card().hyper, of_s4d = s4d_block_card().hyper;
  const std::string none = "none", glu = "glu", full = "full";
  if (is_diagonal(h))
    return hyper_of(
        h, of_s4d,
        {{"width", width}, {"layers", std::int64_t{1}}, {"block", none}, {"output", glu}, {"code", full}, {"around", h.choice("code")}});
  return hyper_of(
      h, of_s4,
      {{"width", width}, {"layers", std::int64_t{1}}, {"block", none}, {"output", glu}, {"l_kernel", h.integer("l_kernel") / stride}});
}

}  // namespace sashimi_parts
}  // namespace reclab::architectures

// SPDX-License-Identifier: GPL-3.0-or-later
//   a stack of residual blocks, each with an sLSTM or with an mLSTM layer (see slstm and mlstm):
//   mLSTM block: u + mLSTM(norm u);   sLSTM block: u + sLSTM(norm u), then u + W_down(gelu(g) w), [g w] = W_up norm(u)
// M. Beck et al., xLSTM: extended long short-term memory, NeurIPS 2024. Names and conventions of the authors' xLSTMBlockStack.
#include <string>
#include <utility>

#include "array/error.h"
#include "models/parts/parts.h"

namespace reclab::architectures {

Architecture slstm();
Architecture mlstm();

namespace {

/// One of the two, as it is where it stands alone, under its own id.
const Architecture& part(bool of_slstm) {
  const auto named = [](Architecture a, const char* id) {
    a.id = id;
    return a;
  };
  static const Architecture s = named(slstm(), "slstm"), m = named(mlstm(), "mlstm");
  return of_slstm ? s : m;
}

bool is_shared(const std::string& key) { return key == "width" || key == "layers" || key == "post_norm"; }

bool is_slstm(const Hyper& h, std::int64_t block) {
  if (const std::int64_t at = h.integer("slstm_at")) return (at >> block & 1) != 0;
  const std::int64_t every = h.integer("slstm_every"), first = h.integer("slstm_first");
  return every > 0 && block >= first && (block - first) % every == 0;
}

/// The hyper-parameters of one of the two: those that all blocks share, and its own, which have its id in front.
Hyper hyper_of_part(const Hyper& h, bool of_slstm) {
  const Architecture& own = part(of_slstm);
  Hyper values(own.hyper);
  for (const HyperSpec& row : own.hyper) {
    if (row.key == "block") continue;
    values.set(row.key, h.value(is_shared(row.key) ? row.key : own.id + "_" + row.key), own.id);
  }
  return values;
}

}  // namespace

Architecture xlstm() {
  Architecture a;
  a.title = "xLSTM";
  a.equations = {"block b = 0 … L−1 is an sLSTM block where slstm_every and slstm_first (or slstm_at) say so, else an mLSTM block",
                 "mLSTM block: u ← u + mLSTM(norm u)",
                 "sLSTM block: u ← u + sLSTM(norm u),  u ← u + W_down (gelu(g) ⊙ w), [g w] = W_up norm(u)",
                 "after the last block: norm(u)"};
  for (const bool of_slstm : {false, true})
    for (const std::string& line : part(of_slstm).equations) a.equations.push_back(part(of_slstm).title + ": " + line);
  a.notes = {
      "Names and shapes are those of the authors' xLSTMBlockStack: block b's xlstm_norm, xlstm.*, ffn_norm and ffn.*, and "
      "final/post_blocks_norm.",
      "The paper writes xLSTM[a:b] for a mLSTM to b sLSTM blocks: [7:1] is slstm_every = 8; [1:0] is slstm_every = 0 and [0:1] slstm_every "
      "= 1 with slstm_first = 0.",
      "The forget gates' biases of an sLSTM block, and what the last matrices of a block start with, depend on the block's number and on "
      "how many blocks there are of both kinds."};
  for (const bool of_slstm : {false, true})
    for (const std::string& note : part(of_slstm).notes) a.notes.push_back(part(of_slstm).title + ": " + note);
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("layers", "L", 2, 1, 48, "Blocks in a row, of both kinds."),
             hyper_integer("slstm_every", "", 2, 0, 48, "Each so many blocks there is one with an sLSTM; 0: none.", "blocks"),
             hyper_integer("slstm_first", "", 1, 0, 47, "The number of the first of them, from 0."),
             hyper_integer("slstm_at", "", 0, 0, (std::int64_t{1} << 48) - 1,
                           "Not 0: which blocks have an sLSTM, whatever the two before say: the sum of 2^b over their numbers b from 0; "
                           "numbers beyond the last block do not count."),
             hyper_flag("post_norm", true, "Whether a norm follows the last block.")};
  for (const bool of_slstm : {false, true})
    for (HyperSpec row : part(of_slstm).hyper) {
      if (is_shared(row.key) || row.key == "block") continue;
      row.key = part(of_slstm).id + "_" + row.key;
      row.text = part(of_slstm).title + ": " + row.text;
      a.hyper.push_back(std::move(row));
    }
  a.spectrum = "of an mLSTM block " + part(false).spectrum + "; of an sLSTM block " + part(true).spectrum;
  a.source = part(false).source;
  a.reference = part(false).reference;
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    for (std::int64_t block = 0; block < h.integer("layers"); ++block) {
      const bool of_slstm = is_slstm(h, block);
      try {
        part(of_slstm).check(hyper_of_part(h, of_slstm));
      } catch (const Error& error) {
        ErrorPlace where = error.where();
        where.model = "xlstm";
        if (!is_shared(where.parameter)) where.parameter = part(of_slstm).id + "_" + where.parameter;
        throw Error("xlstm, " + error.sentence(), where);
      }
    }
  };
  a.kind = [](const Hyper& h, std::int64_t block) { return LayerKind{&part(is_slstm(h, block)), hyper_of_part(h, is_slstm(h, block))}; };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.flag("post_norm") ? parts::normalised(x, 1e-5) * parts::one_plus(l, "post_blocks_norm.weight", x.dim(-1)) : x;
  };
  return a;
}

}  // namespace reclab::architectures

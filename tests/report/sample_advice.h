// SPDX-License-Identifier: Apache-2.0
#pragma once

// A made-up answer of `ullage advise`.

#include "ullage/advise/advice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::report {

inline advise::Advice sample_advice() {
  advise::Advice advice;
  advice.command = {"python", "train.py"};
  advice.device = "NVIDIA GeForce RTX 3060";
  advice.memory = Bytes{12485394432};
  advice.plain.fits = false;
  advice.plain.peak = Bytes{16106127360};
  advice.refused = "2.30 GiB more are refused at train.py:305, after 10.39 GiB were taken";
  advice.rows.resize(4);
  advice.rows[0] = {.id = "expandable_segments+gradient_checkpointing",
                    .name = "together: allocator: expandable_segments:True + checkpoint each of 12 Block",
                    .fits = true,
                    .peak = Bytes{11865000000},
                    .more_time = 0.18,
                    .action = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; checkpoint(layer, x)",
                    .place = {},
                    .note = ""};
  advice.rows[1] = {.id = "half_precision",
                    .name = "bf16 autocast",
                    .effect = advise::Effect::Rounding,
                    .fits = false,
                    .peak = Bytes{13958643712},
                    .more_time = std::nullopt,
                    .action = "with torch.autocast(\"cuda\", torch.bfloat16): around Net(...)",
                    .place = {"/home/x/train.py", 300},
                    .note = ""};
  advice.rows[2] = {.id = "chunked_loss",
                    .name = "chunked loss",
                    .effect_known = false,
                    .basis = advise::Basis::Computed,
                    .fits = true,
                    .peak = Bytes{12000000000},
                    .more_time = std::nullopt,
                    .action = "compute head and loss in chunks",
                    .place = {},
                    .note = "in 8 chunks"};
  advice.rows[3] = {.id = "fused_optimizer",
                    .name = "optimizer: fused\x1b[2J",
                    .effect = advise::Effect::Rounding,
                    .basis = advise::Basis::NotTried,
                    .fits = std::nullopt,
                    .peak = std::nullopt,
                    .more_time = std::nullopt,
                    .action = "torch.optim.Adam(..., fused=True)",
                    .place = {"/home/x/train.py", 12},
                    .note = "not tried: the time of 2 min 00 s was over; --seconds gives more"};
  advice.time_basis = "of a step, estimated";
  advice.notes = {"a note"};
  advice.runs = 9, advice.wall = Seconds{61.5};
  return advice;
}

// Three steps that rise to `top` bytes and fall again; the cache holds what was the most so far.
inline advise::Curve sample_curve(std::uint64_t top) {
  advise::Curve curve;
  curve.beside = 400_MiB;
  Bytes most;
  for (int i = 0; i < 3; ++i) {
    advise::Curve::Step& step = curve.steps.emplace_back();
    for (std::size_t part = 0; part < advise::Curve::kParts; ++part) {
      const std::uint64_t rise = part < advise::Curve::kParts / 2 ? part : advise::Curve::kParts - part;
      step.tensors.push_back(Bytes{(top - curve.beside.count) / (advise::Curve::kParts / 2) * rise});
      most = std::max(most, step.tensors.back());
      step.held.push_back(most);
    }
  }
  return curve;
}

// With curves of the plain program, of the first two rows, and of a plan that says only its last step.
inline advise::Advice sample_advice_with_curves() {
  advise::Advice advice = sample_advice();
  advice.plain.name = "as it is";
  advice.plain.curve = sample_curve(advice.plain.peak->count);
  advice.rows[0].curve = sample_curve(advice.rows[0].peak->count);
  advice.rows[1].curve = sample_curve(advice.rows[1].peak->count);
  advise::Row plan = advice.rows[0];
  plan.id = "ullage_run", plan.name = "plan: 31 values recomputed, 4 moved";
  for (std::size_t i = 0; i + 1 < plan.curve->steps.size(); ++i) plan.curve->steps[i] = {};
  advice.rows.insert(advice.rows.begin() + 1, plan);
  return advice;
}

}  // namespace ullage::report

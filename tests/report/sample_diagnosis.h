// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hand-made diagnoses that contain everything a writer can meet, and the check that the parts of a diagnosis add up.

#include "ullage/diagnose/diagnosis.h"

#include <gtest/gtest.h>

namespace ullage::report {

using diagnose::Bar;
using diagnose::Basis;
using diagnose::Diagnosis;
using Kind = Bar::Part::Kind;

inline void expect_adds_up(const Diagnosis& diagnosis) {
  EXPECT_FALSE(diagnosis.headline.empty());
  if (diagnosis.bar) {
    Bytes sum;
    for (const Bar::Part& part : diagnosis.bar->parts) sum += part.bytes;
    EXPECT_EQ(sum, diagnosis.bar->total);
  }
  if (diagnosis.peak) {
    Bytes sum;
    for (const trace::Owner& owner : diagnosis.peak->owners) sum += owner.bytes;
    EXPECT_EQ(sum, diagnosis.peak->bytes);
  }
}

inline Diagnosis sample_message() {
  Diagnosis d;
  d.source = {"message", "train.log", "2.2 to 2.4", "cuda-2.2", 812, 3};
  d.headline = "CUDA out of memory on GPU 0: 2.87 GiB asked for, 1.12 GiB free of 23.69 GiB";
  d.facts.device = 0;
  d.facts.requested = 2939_MiB;
  d.facts.capacity = 24258_MiB;
  d.facts.allocated = 17_GiB;
  d.facts.free = 1147_MiB;
  d.bar = Bar{{{Kind::Live, "live tensors", 17_GiB},
               {Kind::Usable, "cached and usable", 1_GiB},
               {Kind::Stuck, "cached but stuck", 4_GiB},
               {Kind::NotPyTorch, "not PyTorch's or not said", 583_MiB},
               {Kind::Free, "free", 1147_MiB}},
              24258_MiB,
              "GPU 0, 23.69 GiB"};
  d.causes = {{"fragmentation",
               "the cached bytes are in pieces that are too small",
               0.85,
               {"4.94 GiB are cached but not allocated, 2.87 GiB were asked for",
                "PyTorch gives cached bytes back before it fails, so each segment left holds a live tensor"}},
              {"device_full", "the tensors simply do not fit", 0.3, {"17.00 GiB of 23.69 GiB are live tensors"}}};
  d.remedies = {{"expandable_segments", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py ...", 4_GiB,
                 Basis::Computed, "for fragmentation"},
                {"smaller_batch", "halve the batch size", std::nullopt, Basis::Known, ""}};
  d.notes = {"the figures are rounded to 0.01 GiB"};
  d.to_know_more =
      "call torch.cuda.memory._record_memory_history() at the start and "
      "torch.cuda.memory._dump_snapshot(\"oom.pickle\") in an except block around the step";
  d.next = "ullage explain oom.pickle";
  return d;
}

inline trace::Owner owner(const char* name, trace::Category category, Bytes bytes, std::uint64_t storages) {
  return {name, category, bytes, storages, {}};
}

inline Diagnosis sample_snapshot() {
  using trace::Category;
  Diagnosis d = sample_message();
  d.source = {"snapshot", "oom.pickle", "2.6 or later", "D", 0, 1};
  d.facts.device = 1;
  d.bar = Bar{{{Kind::Live, "parameters", 2_GiB},
               {Kind::Live, "optimizer state", 4_GiB},
               {Kind::Live, "activations", 9_GiB},
               {Kind::Live, "unattributed", 1_B},
               {Kind::Usable, "cached and usable", 1_GiB},
               {Kind::Stuck, "cached but stuck", 3_GiB}},
              19_GiB + 1_B,
              "reserved by PyTorch on GPU 1"};
  d.peak = diagnose::Peak{
      15_GiB + 1_B,
      EventId{12345},
      {owner("model.py:42 forward", Category::Activations, 9_GiB, 1204),
       owner("torch/optim/adamw.py:120 _init_group", Category::OptimizerState, 4_GiB, 296),
       owner("train.py:17 <module>", Category::Parameters, 2_GiB, 148), owner("", Category::Unattributed, 1_B, 1)}};
  d.replay = sim::Replay{};
  d.replay->device = 1;
  d.replay->events = 700;
  d.replay->segments_real = 400;
  d.replay->segments_model = 399;
  d.replay->first_difference = sim::Difference{EventId{700}, 20_MiB, 0_B, "a block was there"};
  return d;
}

// Has more of everything than fits on a screen.
inline Diagnosis sample_overfull() {
  Diagnosis d = sample_snapshot();
  const std::string words = "a long sentence with both numbers 1.00 GiB and 2.00 GiB that goes on and on ";
  d.headline = words + words;
  d.peak->owners.clear();
  d.peak->bytes = 5050_MiB;
  for (std::uint64_t i = 100; i > 0; --i) {
    d.peak->owners.push_back(owner(("some/deep/folder/module_" + std::to_string(i) + ".py:10 forward").c_str(),
                                   trace::Category::Activations, 1_MiB * i, i));
  }
  for (int i = 0; i < 12; ++i) {
    d.causes.push_back({"cause", "cause number " + std::to_string(i), 0.2, {words, words + words, words}});
    d.remedies.push_back({"remedy", words, std::nullopt, Basis::Known, words + words});
    d.notes.push_back(words + words);
  }
  d.to_know_more = words + words + words + words + words + words + words;
  return d;
}

}  // namespace ullage::report

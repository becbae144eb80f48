// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds what switches.py noted while a program ran: which remedies the program uses already, and at which of its lines
// a remedy would be written.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ullage::advise {

// A line of the program. An empty `file` means that it is not known.
struct Place {
  std::string file;
  int line = 0;
};

struct Facts {
  struct Network {
    Place called;        // the first call that keeps something for a backward pass; if none does, the first with
                         // gradients on. For `cast`: the first call that was cast
    std::string name;    // the network's class
    std::string device;  // "cuda", "cpu"
  };
  struct Optimizer {
    Place made;
    std::string name;
    bool has_foreach = false, has_fused = false;  // its class knows the argument
    std::optional<bool> foreach, fused;           // what the program chose; none: torch's default
    std::string device;
  };
  struct Layers {
    Place called;
    std::string name;  // the layers' class; of several classes: "Block and Layer"
    std::int64_t count = 0;
    bool has_batch_norm = false;
  };
  struct Replicas {  // DistributedDataParallel
    Place made;
    bool bucket_views = false;  // gradient_as_bucket_view
  };

  struct Process {
    Bytes peak;    // VmHWM
    Bytes others;  // the most that the processes it started held at a border of steps; zero under Ullage, which counts
                   // all processes itself
    Seconds step;  // CPU time of the shortest step
  };

  std::optional<Network> network;
  std::optional<Optimizer> optimizer;  // the first one
  std::optional<Layers> repeated_layers;
  std::optional<Replicas> replicas;
  // The first use of each by the program itself. Of cudnn_benchmark: the first call of a network while it is on.
  std::optional<Place> autocast, checkpoint, cudnn_benchmark, keeps_zeroed_gradients;
  std::optional<Place> autocast_off;    // the program's own, switched off, in which a network was called
  std::optional<Place> math_attention;  // the first attention on a card with flash and memory-efficient switched off
  bool has_half_weights = false;
  std::string torch;               // its version; empty: no Python process of the program imported torch
  std::optional<Network> cast;     // the first forward pass under the autocast that switches.py switched on
  bool evaluation = false;         // at least one evaluation ran without that autocast
  std::string other_device;        // the device of a network that ran without that autocast; empty: none did
  std::optional<Process> process;  // of a run whose steps switches.py timed, with Ullage's runtime or without
  std::optional<Seconds> step;     // estimated time of a step, by the card's rates, if switches.py was given `costs`
};

// Reads what the Python processes of one run wrote into `folder`. If several wrote, takes the facts of the one that
// trains. That is one with casts; if there is none, one with an optimizer, else one with a network, else one that
// imported torch. If several such processes wrote, such as ranks, takes any of them. If none did, the facts are empty.
// Damaged files are left out, because a process may have been killed while it wrote.
Facts read_facts(const std::filesystem::path& folder);

}  // namespace ullage::advise

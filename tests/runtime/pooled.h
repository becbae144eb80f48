// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session for the tests of this folder. A process has only one, so the first test that asks starts it.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/session.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/adam.h>

namespace ullage::runtime {

inline constexpr Bytes kTestBudget = 1_GiB;

inline store::LedgerSlot& test_slot() {
  static auto* slot = new store::LedgerSlot;
  return *slot;
}

inline Session& pooled() {
  static Session* session = [] {
    Session::Settings settings;
    settings.budget = kTestBudget;
    settings.slot = &test_slot();
    Result<Session*> started = Session::start(std::move(settings));
    if (!started) throw std::runtime_error(started.error().text());
    return *started;
  }();
  return *session;
}

// A small net with the kinds of requests that the pool must serve: convolutions by oneDNN, BatchNorm, Adam's state.
struct SmallStep {
  torch::nn::Sequential net{
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 4).stride(2).padding(1)), torch::nn::BatchNorm2d(16),
      torch::nn::LeakyReLU(),
      torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(16, 3, 4).stride(2).padding(1))};
  torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(1e-3)};

  double run() {
    const torch::Tensor x = torch::ones({4, 3, 32, 32});
    adam.zero_grad();
    const torch::Tensor loss = (net->forward(x) - x).pow(2).mean();
    loss.backward();
    adam.step();
    return loss.item<double>();
  }
};

}  // namespace ullage::runtime

// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/dry_run.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

TEST(CudnnNote, NamesACudnnThatCanPlanWithoutACard) {
  EXPECT_EQ(cudnn_note(2, 13, 9, false),
            "workspaces of cuDNN, counted as 0 bytes for its 2 plans: for cuDNN's own figures install it beside torch, "
            "in version 9.8 or later: pip install 'nvidia-cudnn-cu13>=9.8'");
  EXPECT_EQ(cudnn_note(1, 12, 9, true),
            "workspaces of cuDNN, counted as 0 bytes for its 1 plan: this cuDNN cannot plan without a card, 9.8 and "
            "later can: pip install 'nvidia-cudnn-cu12>=9.8'");
}

TEST(CudnnNote, NamesATorchThatIsNotLinkedToCudnn8) {
  EXPECT_EQ(cudnn_note(2, 12, 8, false),
            "workspaces of cuDNN, counted as 0 bytes for its 2 plans: cuDNN 8, which this torch needs, cannot plan "
            "without a card, 9.8 and later can: use torch 2.8 or later, or 2.4 to 2.7 with pip install "
            "'nvidia-cudnn-cu12>=9.8'");
}

}  // namespace
}  // namespace ullage::cli

// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

namespace ullage::drycard {
namespace {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

int launch(const CardLibrary& card, void* stream) {
  const void* kernel = nullptr;
  void** arguments = nullptr;
  return card("cudaLaunchKernel", kernel, Dim3{}, Dim3{}, arguments, std::size_t{0}, stream);
}

TEST(DryCardStream, CountsLaunches) {
  CardLibrary card({});
  void* stream = nullptr;
  EXPECT_EQ(card("cudaStreamCreateWithPriority", &stream, 1u, -3), 0);
  int priority = 0;
  EXPECT_EQ(card("cudaStreamGetPriority", stream, &priority), 0);
  EXPECT_EQ(priority, -3);
  EXPECT_EQ(launch(card, stream), 0);
  EXPECT_EQ(launch(card, nullptr), 0);
  EXPECT_EQ(card.ledger().launches.load(), 2u);
  EXPECT_EQ(card("cudaStreamQuery", stream), 0);
  EXPECT_EQ(card("cudaStreamDestroy", stream), 0);
}

TEST(DryCardStream, MeasuresBetweenEvents) {
  CardLibrary card({});
  void* first = nullptr;
  void* second = nullptr;
  void* stream = nullptr;
  float milliseconds = -1;
  EXPECT_EQ(card("cudaEventCreate", &first), 0);
  EXPECT_EQ(card("cudaEventCreateWithFlags", &second, 0u), 0);
  EXPECT_NE(card("cudaEventElapsedTime", &milliseconds, first, second), 0);
  EXPECT_EQ(card("cudaEventRecord", first, stream), 0);
  EXPECT_EQ(card("cudaEventRecord", second, stream), 0);
  EXPECT_EQ(card("cudaEventElapsedTime", &milliseconds, first, second), 0);
  EXPECT_GT(milliseconds, 0);
  const float nothing_between = milliseconds;
  EXPECT_EQ(card("cudaEventRecord", second, stream), 0);
  EXPECT_EQ(card("cudaEventElapsedTime", &milliseconds, first, second), 0);
  EXPECT_FLOAT_EQ(milliseconds, 2 * nothing_between);  // whatever the host's clock says
  EXPECT_EQ(card("cudaEventDestroy", first), 0);
  EXPECT_EQ(card("cudaEventDestroy", second), 0);
}

TEST(DryCardStream, CapturesAGraphAcrossStreams) {
  CardLibrary card({});
  void* stream = nullptr;
  void* other = nullptr;
  void* event = nullptr;
  void* graph = nullptr;
  void* executable = nullptr;
  int status = -1;
  card("cudaStreamCreate", &stream);
  card("cudaStreamCreate", &other);
  card("cudaEventCreate", &event);
  EXPECT_NE(card("cudaStreamBeginCapture", static_cast<void*>(nullptr), 0), 0);
  EXPECT_EQ(card("cudaStreamBeginCapture", stream, 0), 0);
  card("cudaEventRecord", event, stream);
  card("cudaStreamWaitEvent", other, event, 0u);
  EXPECT_EQ(card("cudaStreamIsCapturing", other, &status), 0);
  EXPECT_EQ(status, 1);
  launch(card, stream);
  launch(card, other);
  EXPECT_EQ(card.ledger().launches.load(), 0u);
  EXPECT_EQ(card("cudaStreamEndCapture", stream, &graph), 0);
  EXPECT_EQ(card("cudaStreamIsCapturing", other, &status), 0);
  EXPECT_EQ(status, 0);
  std::size_t nodes = 0;
  EXPECT_EQ(card("cudaGraphGetNodes", graph, static_cast<void*>(nullptr), &nodes), 0);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(card("cudaGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
  EXPECT_EQ(card("cudaGraphLaunch", executable, stream), 0);
  EXPECT_EQ(card("cudaGraphLaunch", executable, stream), 0);
  EXPECT_EQ(card.ledger().launches.load(), 4u);
  EXPECT_EQ(card("cudaGraphExecDestroy", executable), 0);
  EXPECT_EQ(card("cudaGraphDestroy", graph), 0);
  EXPECT_EQ(card("cudaEventDestroy", event), 0);
  EXPECT_EQ(card("cudaStreamDestroy", stream), 0);
  EXPECT_EQ(card("cudaStreamDestroy", other), 0);
}

TEST(DryCardStream, RunsHostFunctionsAtOnce) {
  CardLibrary card({});
  int ran = 0;
  void (*function)(void*) = [](void* data) { ++*static_cast<int*>(data); };
  void* stream = nullptr;
  EXPECT_EQ(card("cudaLaunchHostFunc", stream, function, static_cast<void*>(&ran)), 0);
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace ullage::drycard

// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/cuda.h"

#include "ullage/predict/cuda_rules.h"
#include "ullage/predict/predict.h"
#include "program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ullage::predict {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kContext = 522 * kMiB;

// Asks for the prediction on a card, and checks what holds for every program: the rows add up.
Cuda asked(const trace::TraceFile& file, const CudaQuestion& question = {}) {
  const Cuda cuda = on_cuda(file, file.takes.front(), question);
  Bytes sum;
  for (const Row& row : cuda.rows) sum += row.bytes;
  EXPECT_EQ(sum, cuda.process_peak);
  EXPECT_LE(cuda.allocated_peak, cuda.reserved_peak);
  EXPECT_LE(cuda.reserved_peak, cuda.process_peak);
  EXPECT_FALSE(cuda.calibrated);
  EXPECT_EQ(cuda.answer.has_value(), question.capacity.has_value());
  return cuda;
}

Bytes row(const Cuda& cuda, const std::string& name) {
  Bytes sum;
  for (const Row& one : cuda.rows)
    if (one.name == name) sum += one.bytes;
  return sum;
}
bool has_row(const Cuda& cuda, const std::string& name) {
  return std::any_of(cuda.rows.begin(), cuda.rows.end(), [&](const Row& one) { return one.name == name; });
}

trace::TraceFile file_of(const std::function<void(Program&)>& run) { return takes({{}}, run); }

void in_backward(trace::TraceFile& file, const std::string& op) {
  trace::Take& take = file.takes.front();
  for (std::size_t i = 0; i < take.trace.ops.size(); ++i)
    if (take.trace.ops[i].name == op) take.details[i].backward = true;
}

TEST(CudaRules, EachSaysWhatAndWhere) {
  for (const CudaRule& rule : cuda_rules()) {
    EXPECT_FALSE(rule.ops.empty());
    EXPECT_FALSE(rule.says.empty());
    EXPECT_FALSE(rule.source.empty()) << rule.says;
    const bool adds = rule.effect == CudaEffect::AddForThread || rule.effect == CudaEffect::AddWithin ||
                      rule.effect == CudaEffect::AddToProcess;
    EXPECT_EQ(adds || rule.effect == CudaEffect::Unknown, !rule.row.empty()) << rule.says;
    if (adds) {
      EXPECT_GT(rule.bytes, Bytes{}) << rule.says;
    }
  }
}

TEST(OnCuda, CountsBlocksAsTheCachingAllocatorDoes) {
  const Cuda cuda = asked(file_of([](Program& program) {
    program.from_before(100);                  // a block of 512
    program.op("aten::randn", 1000);           // a block of 1024; both are in a segment of 2 MiB
    program.op("aten::add.Tensor", 3 * kMiB);  // in a segment of 20 MiB
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{512 + 1024 + 3 * kMiB});
  EXPECT_EQ(cuda.reserved_peak, Bytes{22 * kMiB});
  EXPECT_EQ(cuda.process_peak, Bytes{22 * kMiB + kContext});
  EXPECT_EQ(row(cuda, "rounding of the allocator"), Bytes{412 + 24});
  EXPECT_EQ(row(cuda, "cached by the allocator"), Bytes{22 * kMiB - 3 * kMiB - 1536});
  EXPECT_EQ(row(cuda, "CUDA context and libraries"), Bytes{kContext});
}

TEST(OnCuda, UsesTheSettingsAskedFor) {
  const trace::TraceFile file = file_of([](Program& program) { program.op("aten::randn", 11 * kMiB); });
  EXPECT_EQ(asked(file).reserved_peak, Bytes{12 * kMiB});  // from 10 MiB on, segments are multiples of 2 MiB
  CudaQuestion question;
  question.settings.roundup_power2_divisions.fill(2);
  EXPECT_EQ(asked(file, question).allocated_peak, Bytes{12 * kMiB});
}

TEST(OnCuda, LeavesOutScratchOfConvolutions) {
  const Cuda cuda = asked(file_of([](Program& program) {
    const OpId op = program.begin("aten::convolution_backward.out");
    const StorageId scratch = program.make(64 * kMiB);
    const StorageId result = program.make(4 * kMiB);
    program.free(scratch);
    program.end(op, {gives(result, {1048576})});
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{4 * kMiB});
  EXPECT_TRUE(has_row(cuda, "cuDNN workspaces"));  // with zero bytes, because the size is unknown
  EXPECT_EQ(row(cuda, "cuDNN workspaces"), Bytes{});
}

TEST(OnCuda, KeepsWhatDiesInOtherOpsOrOutlivesItsOwn) {
  const Cuda cuda = asked(file_of([](Program& program) {
    const OpId op = program.begin("aten::svd");
    const StorageId scratch = program.make(64 * kMiB);
    program.free(scratch);
    program.end(op);
    const StorageId result = program.op("aten::convolution", 2 * kMiB);
    program.free(result);
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{64 * kMiB});
}

TEST(OnCuda, LeavesNumbersOnTheHost) {
  const Cuda cuda = asked(file_of([](Program& program) {
    program.op("aten::randn", 4096);
    const OpId op = program.begin("aten::mul.Scalar");
    const StorageId number = program.make(8);
    const StorageId more = program.make(12);
    program.free(number);
    program.free(more);
    program.end(op);
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{4096 + 512});  // of the 12 bytes
}

TEST(OnCuda, LeavesOutWhatWorkerThreadsTakeWithinAnAttention) {
  const Cuda cuda = asked(file_of([](Program& program) {
    const OpId op = program.begin("aten::_scaled_dot_product_flash_attention_for_cpu_backward");
    const StorageId result = program.make(8192);
    const StorageId sums = program.make_on_worker(1 * kMiB);
    program.free(sums);
    program.end(op, {gives(result, {2048})});
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{8192});
}

TEST(OnCuda, AddsOneWorkspaceOfCublasForEachThread) {
  trace::TraceFile file = file_of([](Program& program) {
    program.op("aten::mm", 512);
    program.op("aten::mm", 512);
    program.op("aten::bmm", 512);
  });
  EXPECT_EQ(row(asked(file), "cuBLAS workspaces"), Bytes{8519680});
  in_backward(file, "aten::bmm");
  EXPECT_EQ(row(asked(file), "cuBLAS workspaces"), Bytes{2 * 8519680});
  EXPECT_EQ(row(asked(file, {80_GiB, {}}), "cuBLAS workspaces"), Bytes{64 * kMiB});
  EXPECT_EQ(row(asked(file, {24_GiB, {}}), "cuBLAS workspaces"), Bytes{2 * 8519680});
}

TEST(OnCuda, AddsAWorkspaceWhileAProductWithABiasRuns) {
  const Cuda cuda = asked(file_of([](Program& program) {
    program.op("aten::addmm", 512);
    program.op("aten::randn", 512);
  }));
  EXPECT_EQ(cuda.allocated_peak, Bytes{8519680 + 1 * kMiB + 512});
  EXPECT_EQ(row(cuda, "cuBLASLt workspace"), Bytes{1 * kMiB});
}

// A step with two parameters of 1 MiB and Adam's temporaries: a root and a quotient for each.
trace::TraceFile adam(const std::string& program_name) {
  trace::TraceFile file = file_of([](Program& program) {
    const std::uint64_t bytes = 1 * kMiB;
    const trace::TensorUse::How written = trace::TensorUse::How::Written;
    std::vector<StorageId> parameters, gradients;
    for (int i = 0; i < 2; ++i) {
      parameters.push_back(program.op("aten::empty", bytes));
      program.role(parameters.back(), trace::Role::Parameter);
    }
    const OpId forward =
        program.begin("aten::mul.Tensor", {reads(parameters[0], {262144}), reads(parameters[1], {262144})});
    const StorageId loss = program.make(512);
    program.end(forward, {gives(loss, {128})});
    program.save(parameters[0]);
    for (int i = 0; i < 2; ++i) {
      gradients.push_back(program.op("aten::mul.backward", bytes, {reads(loss, {128})}));
      program.role(gradients.back(), trace::Role::Gradient);
    }
    program.unsave(parameters[0]);
    program.free(loss);
    for (int i = 0; i < 2; ++i) {
      const StorageId root = program.op("aten::sqrt", bytes, {reads(gradients[i], {262144})});
      const StorageId quotient = program.op("aten::div.Scalar", bytes, {reads(root, {262144})});
      program.free(root);
      const OpId update = program.begin(
          "aten::addcdiv_",
          {{parameters[i], written, 6, {262144}}, reads(gradients[i], {262144}), reads(quotient, {262144})});
      program.end(update);
      program.free(quotient);
    }
  });
  trace::Take& take = file.takes.front();
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    take.details[i].backward = take.trace.ops[i].name == "aten::mul.backward";
    take.details[i].grad_mode = take.trace.ops[i].name == "aten::mul.Tensor";
  }
  file.command = {program_name, "train.py"};
  return file;
}

TEST(OnCuda, PythonsOptimizersTakeLists) {
  // At the peak there are two parameters and two gradients. The loop adds one root and one quotient at a time; lists
  // add the roots of both.
  EXPECT_EQ(asked(adam("/usr/bin/trainer")).allocated_peak, Bytes{6 * kMiB});
  const CudaHistory loop = cuda_history(adam("/usr/bin/trainer"), adam("/usr/bin/trainer").takes.front(), {});
  const CudaHistory lists = cuda_history(adam("/usr/bin/python3"), adam("/usr/bin/python3").takes.front(), {});
  const auto most_live = [](const CudaHistory& history) {
    Bytes live, most;
    for (const CudaRequest& request : history.requests) {
      if (request.frees) live -= history.blocks[request.block].bytes;
      if (!request.frees) live += history.blocks[request.block].bytes;
      most = std::max(most, live);
    }
    return most;
  };
  EXPECT_EQ(most_live(loop), Bytes{6 * kMiB});
  EXPECT_EQ(most_live(lists), Bytes{6 * kMiB});
  EXPECT_EQ(loop.blocks.size(), lists.blocks.size() + 2);  // quotients are written in place
  // The sixth block is the first root; in lists nothing goes before the second root is made.
  const auto frees_before = [](const CudaHistory& history, std::size_t birth) {
    std::size_t births = 0, frees = 0;
    for (const CudaRequest& request : history.requests) {
      if (!request.frees && ++births == birth) break;
      if (request.frees && births >= 6) ++frees;
    }
    return frees;
  };
  EXPECT_EQ(frees_before(loop, 8), 2u);
  EXPECT_EQ(frees_before(lists, 7), 0u);
}

TEST(OnCuda, KnowsPythonByItsName) {
  trace::TraceFile file;
  EXPECT_FALSE(is_python(file));
  for (const char* name : {"python", "python3.11", "/opt/bin/python3", "./train.py"}) {
    file.command = {name};
    EXPECT_TRUE(is_python(file)) << name;
  }
  for (const char* name : {"ullage-dcgan", "/home/python/trainer", "monty-python"}) {
    file.command = {name};
    EXPECT_FALSE(is_python(file)) << name;
  }
}

TEST(OnCuda, ACardThatIsLargeEnoughFits) {
  const trace::TraceFile file = file_of([](Program& program) { program.op("aten::randn", 1024 * kMiB); });
  const Cuda cuda = asked(file, {Bytes{2048 * kMiB}, {}});
  EXPECT_EQ(cuda.capacity, Bytes{2048 * kMiB});
  EXPECT_TRUE(cuda.answer->fits);
  EXPECT_EQ(cuda.answer->retries, 0u);
}

TEST(OnCuda, ACardThatIsTooSmallSaysWhereItFails) {
  const trace::TraceFile file = file_of([](Program& program) {
    program.op("aten::randn", 512 * kMiB);
    program.op("aten::exp", 1024 * kMiB);
  });
  const Cuda cuda = asked(file, {Bytes{2048 * kMiB}, {}});
  EXPECT_EQ(cuda.allocated_peak, Bytes{1536 * kMiB});  // what is needed is said all the same
  EXPECT_FALSE(cuda.answer->fits);
  EXPECT_EQ(cuda.answer->requested, Bytes{1024 * kMiB});
  EXPECT_EQ(cuda.answer->allocated, Bytes{512 * kMiB});
  EXPECT_EQ(cuda.answer->reserved, Bytes{512 * kMiB});
  EXPECT_EQ(cuda.answer->device_free, Bytes{2048 * kMiB - kContext - 512 * kMiB});
  EXPECT_EQ(cuda.answer->op, "aten::exp");
}

TEST(OnCuda, CachedSegmentsAreGivenBackToMakeRoom) {
  const trace::TraceFile file = file_of([](Program& program) {
    const StorageId first = program.op("aten::randn", 800 * kMiB);
    program.free(first);
    program.op("aten::exp", 1024 * kMiB);
  });
  const Cuda cuda = asked(file, {Bytes{2048 * kMiB}, {}});
  EXPECT_EQ(cuda.reserved_peak, Bytes{1824 * kMiB});  // without a limit
  EXPECT_TRUE(cuda.answer->fits);
  EXPECT_EQ(cuda.answer->retries, 1u);
}

TEST(OnCuda, ACardSmallerThanTheContext) {
  const trace::TraceFile file = file_of([](Program& program) { program.op("aten::randn", 512); });
  const Cuda cuda = asked(file, {Bytes{256 * kMiB}, {}});
  EXPECT_FALSE(cuda.answer->fits);
  EXPECT_EQ(cuda.answer->requested, Bytes{kContext});
  EXPECT_EQ(cuda.answer->device_free, Bytes{256 * kMiB});
}

TEST(OnCuda, AnEmptyTakeNeedsTheContext) {
  EXPECT_EQ(asked(file_of([](Program&) {})).process_peak, Bytes{kContext});
}

}  // namespace
}  // namespace ullage::predict

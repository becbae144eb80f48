// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/message.h"

#include "read/message_facts.h"
#include "ullage/read/log/log.h"
#include "ullage/read/log/log_triggers.h"
#include "ullage/read/log/message_forms.h"
#include "ullage/read/log/message_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace ullage::read {
namespace {

using Figures = std::map<std::string, std::uint64_t>;

trace::Log logged_message(const std::string& text) {
  auto log = read_log(text, "test.log");
  EXPECT_TRUE(log.ok()) << text;
  return log.ok() ? *std::move(log) : trace::Log{};
}

// Breaks a text into lines of at most `width` letters, between words if `at_words`, else anywhere.
std::string wrapped(const std::string& text, std::size_t width, bool at_words, const std::string& prefix) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.size(), at + width);
    const std::size_t blank = text.rfind(' ', end);
    if (at_words && end < text.size() && blank != text.npos && blank > at) end = blank;
    out += prefix + text.substr(at, end - at) + '\n';
    at = end;
    while (at_words && at < text.size() && text[at] == ' ') ++at;
  }
  return out;
}

// Puts a message on one line. Removes a leading "[rank0]: ", because that is a prefix of the log and not the message's.
std::string flat(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  const std::size_t rank = text.find("[rank0]: ");
  return rank == 0 ? text.substr(9) : text;
}

Figures without_rank(Figures figures) {
  figures.erase("rank");
  return figures;
}

TEST(Message, EveryRealOneGivesItsFigures) {
  const auto all = message_facts();
  ASSERT_EQ(all.size(), 92u);
  for (const MessageFacts& one : all) {
    const trace::Log log = logged_message(one.text + "\n");
    ASSERT_EQ(log.errors.size(), 1u) << one.id;
    const trace::OutOfMemory& error = log.errors[0];
    EXPECT_EQ(name_of(error.teller), one.teller) << one.id;
    EXPECT_EQ(error.form, one.form) << one.id;
    EXPECT_EQ(figures_of(error), one.figures) << one.id << ": " << one.text;
    EXPECT_EQ(error.line, 1u);
    EXPECT_EQ(error.repeated, 1u);
  }
}

TEST(Message, NoSizeOfARealOneIsLeftUnread) {
  std::vector<std::string> unread;
  for (const MessageFacts& one : message_facts()) {
    const std::string text = one.text + "\n";
    const auto found = find_message(text, 0, text.size());
    ASSERT_TRUE(found) << one.id;
    for (const std::string& size : found->unread) unread.push_back(one.id + " " + size);
  }
  EXPECT_EQ(unread, std::vector<std::string>{});
}

TEST(Message, SurvivesWrappingAtAnyWidth) {
  for (const MessageFacts& one : message_facts()) {
    if (one.figures.size() < 3) continue;  // short messages are tested below
    const Figures wanted = without_rank(one.figures);
    for (std::size_t width = 16; width <= 160; width += 1 + width / 20) {
      for (const bool at_words : {true, false}) {
        const std::string text = wrapped(flat(one.text), width, at_words, "");
        const trace::Log log = logged_message(text);
        ASSERT_EQ(log.errors.size(), 1u) << one.id << " at " << width << '\n' << text;
        ASSERT_EQ(figures_of(log.errors[0]), wanted) << one.id << " at " << width << '\n' << text;
        ASSERT_EQ(log.errors[0].form, one.form) << one.id << " at " << width << '\n' << text;
      }
    }
  }
}

TEST(Message, SurvivesWrappingUnderRepeatedPrefixes) {
  const std::vector<std::string> prefixes = {"[rank3]: ",
                                             "(EngineCore_0 pid=4711) ",
                                             "ERROR 04-01 23:46:56 [engine.py:160] ",
                                             "2025-06-01T10:00:00.123456789Z stderr F ",
                                             "2: ",
                                             "| ",
                                             "web-1  | ",
                                             "[1,2]<stderr>:",
                                             "E       ",
                                             "12:34:56 somehost trainer[77]: ",
                                             "<someone@somewhere> ",
                                             "trainer/worker: 17 :: ",
                                             "\x1b[31m[rank1]:\x1b[0m "};
  for (const MessageFacts& one : message_facts()) {
    if (one.figures.size() < 3) continue;
    for (const std::string& prefix : prefixes) {
      for (const std::size_t width : {40u, 61u, 100u}) {
        const std::string text = "starting\n" + wrapped(flat(one.text), width, true, prefix) + prefix + "done\n";
        const trace::Log log = logged_message(text);
        ASSERT_EQ(log.errors.size(), 1u) << one.id << '\n' << text;
        ASSERT_EQ(without_rank(figures_of(log.errors[0])), without_rank(one.figures)) << one.id << '\n' << text;
      }
    }
  }
}

// A message that is cut off gives the figures before the cut, or nothing, but never wrong ones.
TEST(Message, TruncatedAnywhereGivesNoWrongFigure) {
  for (const MessageFacts& one : message_facts()) {
    for (std::size_t cut = 0; cut <= one.text.size(); ++cut) {
      for (const bool front : {false, true}) {
        const auto log = read_log(front ? one.text.substr(cut) : one.text.substr(0, cut), "cut");
        if (!log.ok()) continue;
        for (const trace::OutOfMemory& error : log.value().errors) {
          for (const auto& [name, value] : figures_of(error)) {
            const auto wanted = one.figures.find(name);
            ASSERT_TRUE(wanted != one.figures.end() && wanted->second == value)
                << one.id << " cut at " << cut << ": " << name << " = " << value;
          }
        }
      }
    }
  }
}

TEST(Message, CarriageReturnsAndColoursDoNotMatter) {
  const std::string text =
      "  3%|##   | 12/400 [00:01<00:40]\r  4%|##   | 13/400\r\x1b[31mRuntimeError: \x1b[1mCUDA\x1b[0m out of memory. "
      "Tried to allocate \x1b[33m64.00 MiB\x1b[0m (GPU 1; 2.00 GiB total capacity; 1.50 GiB already allocated; 0 bytes "
      "free; 1.60 GiB reserved in total by PyTorch)\r\nnext line\r\n";
  const trace::Log log = logged_message(text);
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(figures_of(log.errors[0]), (Figures{{"requested", 64u << 20},
                                                {"capacity", 2ull << 30},
                                                {"allocated", 3ull << 29},
                                                {"free", 0},
                                                {"reserved", 1717986919},
                                                {"device", 1}}));
  EXPECT_EQ(log.errors[0].text,
            "RuntimeError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 1; 2.00 GiB total capacity; 1.50 GiB "
            "already allocated; 0 bytes free; 1.60 GiB reserved in total by PyTorch)");
  EXPECT_EQ(log.lines, 2u);
}

TEST(Message, FiguresOfOtherLinesAreNotTaken) {
  const trace::Log log = logged_message(
      "RuntimeError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 2.00 GiB total capacity\n"
      "step 4: 3.00 GiB free; 1.00 GiB already allocated; 9.00 GiB cached\n");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(figures_of(log.errors[0]), (Figures{{"requested", 64u << 20}, {"capacity", 2ull << 30}, {"device", 0}}));
}

TEST(Message, FiguresOfAShortNextLineAreNotTaken) {
  const trace::Log log =
      logged_message("CUDA out of memory. Tried to allocate 64.00 MiB\nat 3.00 GiB free; 9.00 GiB cached\n");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(figures_of(log.errors[0]), (Figures{{"requested", 64u << 20}}));
}

// "ordinal 1" at the end of the text may be a cut-off "ordinal 12".
TEST(Message, ANumberAtTheEndOfTheTextMayBeCutOff) {
  const std::string text =
      "RESOURCE_EXHAUSTED: Failed to allocate request for 1.00GiB (1073741824B) on device ordinal 12";
  EXPECT_EQ(logged_message(text + "\n").errors.at(0).device, 12u);
  for (std::size_t cut = 60; cut <= text.size(); ++cut) {
    EXPECT_FALSE(logged_message(text.substr(0, cut)).errors.at(0).device) << cut;
  }
}

TEST(Message, MoreThanSixtyFourBitsHoldIsNoFigure) {
  const trace::Log log = logged_message(
      "CUDA out of memory. Tried to allocate 17179869184.00 GiB (GPU 0; 2.00 GiB total capacity; "
      "99999999999999999999999999 bytes free; 16.00 EiB cached; 15.99 EiB already allocated)\n");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(figures_of(log.errors[0]),
            (Figures{{"capacity", 2ull << 30}, {"allocated", 18435214858663483147ull}, {"device", 0}}));
  EXPECT_NE(log.errors[0].text.find("17179869184.00 GiB"), std::string::npos);
}

TEST(Message, GarbageSizesAreKept) {
  const trace::Log log = logged_message("RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.\n");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].form, "cuda-1eb");
  EXPECT_EQ(log.errors[0].requested, Bytes{1ull << 60});
}

TEST(Message, PrecisionIsThatOfTheCoarsestFigure) {
  const auto precision = [](const std::string& text) { return logged_message(text).errors.at(0).precision; };
  EXPECT_EQ(precision("CUDA out of memory. Tried to allocate 11.17 GiB (GPU 0; 2.00 MiB free)\n"), Bytes{5368710});
  EXPECT_EQ(precision("CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 3.00 KiB free)\n"), Bytes{5243});
  EXPECT_EQ(precision("DefaultCPUAllocator: can't allocate memory: you tried to allocate 77 bytes. Err\n"), Bytes{0});
}

// A text with an example in place of each gap.
std::string example_of(std::string_view pattern) {
  const std::map<char, std::string> examples = {
      {'$', "2.00 GiB"}, {'~', "2.00 GiB"}, {'&', "1.00"},   {'#', "1"},      {'^', "4242"}, {'%', "12"},
      {'@', "25088,12"}, {'?', "float on"}, {'|', "400000"}, {'+', "21.95G"}, {'*', ": "}};
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == kLiteral) {
      text += pattern[++i];
    } else {
      text += is_gap(pattern[i]) ? examples.at(pattern[i]) : std::string(1, pattern[i]);
    }
  }
  return text;
}

TEST(Message, EveryLeadHasATriggerWord) {
  for (const Lead& lead : leads()) {
    EXPECT_NE(find_trigger(example_of(lead.pattern) + "          ", 0), std::string::npos) << lead.pattern;
  }
}

// A gap that stands where the text has the character itself never matches.
TEST(Message, EveryPatternMatchesAnExampleOfIt) {
  const auto squeezed_example = [](std::string_view pattern) {
    std::string letters;
    for (const char c : example_of(pattern) + ".") {
      if (c != ' ') letters += folded(c);
    }
    return letters;
  };
  for (std::size_t of = 0; of < leads().size(); ++of) {
    const Lead& lead = leads()[of];
    const std::string letters = squeezed_example(lead.pattern);
    EXPECT_TRUE(match_at(lead.pattern, letters, 0)) << lead.pattern;
    int tried = first_lead(letters[0], letters[1]);
    while (tried >= 0 && tried != static_cast<int>(of)) tried = next_lead(tried, letters[1]);
    EXPECT_EQ(tried, static_cast<int>(of)) << lead.pattern;
    for (const Clause& clause : lead.clauses) {
      EXPECT_TRUE(match_at(clause.pattern, squeezed_example(clause.pattern), 0)) << clause.pattern;
    }
  }
}

TEST(Message, ABackslashMakesALetterOfAGap) {
  EXPECT_TRUE(match_at("f(\\&data, $", "f(&data,2.00gib)", 0));
  EXPECT_FALSE(match_at("f(&data, $", "f(&data,2.00gib)", 0));
  EXPECT_TRUE(match_at("\\+", "+", 0));
  EXPECT_FALSE(match_at("\\+", "7", 0));
}

struct Wording {
  const char* text;
  const char* teller;
  const char* form;
  Figures figures;
};

// Forms that are not among the real messages of tests/data/messages. They are as the sources of the libraries write
// them.
TEST(Message, OtherWordingsAreKnown) {
  const std::vector<Wording> wordings = {
      {"RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
       "cublas",
       "cublas-not-initialized",
       {}},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cudnn", "cudnn-internal", {}},
      {"RuntimeError: GET was unable to find an engine to execute this computation", "cudnn", "cudnn-no-engine", {}},
      {"RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
       "cusolver",
       "cusolver-alloc",
       {}},
      {"RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", "cufft", "cufft-alloc", {}},
      {"RuntimeError: CUDA error: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "cusparse", "cusparse-resources", {}},
      {"RuntimeError: magma_queue_create: MAGMA_ERR_DEVICE_ALLOC", "magma", "magma-device", {}},
      {"node1:88:99 [3] include/alloc.h:48 NCCL WARN Cuda failure 2 'out of memory'", "nccl", "nccl", {}},
      {"torch.AcceleratorError: CUDA error: out of memory", "cuda-driver", "cuda-error", {}},
      {"CUDA driver error: out of memory", "cuda-driver", "cuda-error", {}},
      {"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 1: cudaMalloc failed: out of "
       "memory",
       "cuda-driver",
       "cuda-malloc",
       {{"requested", 4ull << 30}, {"device", 1}}},
      {"RuntimeError: [metal::malloc] Attempting to allocate 21902407808 bytes which is greater than the maximum "
       "allowed buffer size of 9534832640 bytes.",
       "metal",
       "metal-malloc",
       {{"requested", 21902407808}, {"largest_block", 9534832640}}},
      {"std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory "
       "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
       "other",
       "metal-insufficient",
       {}},
      {"Buffer size (3185049600) exceeds the max buffer size limit (1073741824)", "other", "webgpu-buffer", {}},
      {"Binding size (146847752) of [Buffer] is larger than the maximum binding size (134217728).",
       "other",
       "webgpu-buffer",
       {}},
      {"Prefill would require ~26.16 GB peak (current 21.79 GB + KV+SDPA 4.37 GB) but metal_cap ceiling is 24.96 GB.",
       "other",
       "metal-ceiling",
       {{"capacity", 26800595928}}},
      {"ggml_vulkan: Requested buffer size exceeds device memory allocation limit", "other", "vulkan-buffer", {}},
      {"vkAllocateMemory failed -2", "other", "vulkan", {}},
      {"model requires more system memory (37.9 GiB) than is available (9.3 GiB)",
       "cpu",
       "ollama-system",
       {{"needed", 40694815130}, {"free", 9985798964}}},
      {"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "cpu", "node-heap", {}},
      {"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", "cpu", "java-heap", {}},
      {"OSError: [WinError 1455] The paging file is too small for this operation to complete",
       "cpu",
       "windows-page-file",
       {}},
      {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
       "kernel-kill",
       "ray-low-memory",
       {}},
      {"The kernel for train.ipynb appears to have died. It will restart automatically.",
       "kernel-kill",
       "notebook-died",
       {}},
      {"[launch.py:315:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
       "kernel-kill",
       "signal-9",
       {}},
      {"slurmstepd: error: Exceeded job memory limit", "kernel-kill", "slurm-limit", {}},
      {"XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 15.65G.",
       "jax",
       "jax",
       {{"requested", 16804059546}}},
      {"Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm.",
       "jax",
       "jax-hbm",
       {{"allocated", 23568633037}, {"capacity", 16621523436}}},
      {"bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 2830172160",
       "other",
       "onnxruntime",
       {{"requested", 2830172160}}},
      {"ggml_vulkan: Device memory allocation of size 118497280 failed.",
       "other",
       "vulkan",
       {{"requested", 118497280}}},
      {"ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (969).", "vllm", "vllm-mamba-cache", {}},
      {"(raylet) 12 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
       "kernel-kill",
       "ray-memory-pressure",
       {}},
      {"The paging file is too small for this operation to complete. (os error 1455)", "cpu", "windows-page-file", {}},
      {"Out of memory. Java heap space", "cpu", "java-heap", {}},
      {"Killed", "kernel-kill", "killed", {}},
      {"run.sh: line 12:  4242 Killed                  python train.py", "kernel-kill", "killed", {}},
      {"[python] command terminated with exit code 137", "kernel-kill", "exit-137", {}},
      {"Process `POREC:to_pairs_file` terminated with an error exit status (137)", "kernel-kill", "exit-137", {}},
      {"exitcode: 137", "kernel-kill", "exit-137", {}},
      {"ExitCode=137", "kernel-kill", "exit-137", {}},
      {"worker 3 ended, exit status: -9", "kernel-kill", "signal-9", {}},
      {"Error message\xef\xbc\x9a"
       "Allocation on device",
       "cuda-malloc-async",
       "cuda-malloc-async",
       {}},
      {"failed (exitcode: -9) local_rank: 0 (pid: 1234) of binary: /usr/bin/python", "kernel-kill", "signal-9", {}},
      {"subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.",
       "kernel-kill",
       "signal-9",
       {}},
      {"[88.1] Out of memory: Killed process 4242 (python) total-vm:90000kB, anon-rss:2048kB, file-rss:1024kB, "
       "shmem-rss:0kB, UID:0",
       "kernel-kill",
       "kernel",
       {{"process", 3u << 20}}},
      {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.", "kernel-kill", "slurm-oom-kill", {}},
      {"    reason: OOMKilled", "kernel-kill", "container-oom-killed", {}},
      {"RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed.", "kernel-kill", "dataloader-killed", {}},
      {"RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error. It is possible that dataloader's "
       "workers are out of shared memory.",
       "shared-memory",
       "dataloader-bus-error",
       {}},
      {"RuntimeError: unable to mmap 4096 bytes from file </torch_1_2>: Cannot allocate memory (12)",
       "shared-memory",
       "torch-shm",
       {{"requested", 4096}}},
      {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 2.50 GiB for an array with shape (9, 9) and data "
       "type float32",
       "cpu",
       "numpy",
       {{"requested", 5ull << 29}}},
      {"terminate called after throwing an instance of 'std::bad_alloc'", "cpu", "bad-alloc", {}},
      {"OSError: [Errno 12] Cannot allocate memory", "cpu", "errno-12", {}},
      {"RuntimeError: [enforce fail at CPUAllocator.cpp:56] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0",
       "cpu",
       "cpu",
       {}},
      {"MemoryError", "cpu", "memory-error", {}},
      {"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 4,096,000 bytes (allocated so far: 2,048 bytes).",
       "other",
       "cupy",
       {{"requested", 4096000}, {"allocated", 2048}}},
      {"torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 4.00 GiB "
       "of which 1.00 GiB is free.",
       "xpu",
       "xpu-free",
       {{"requested", 2ull << 30}, {"capacity", 4ull << 30}, {"free", 1ull << 30}, {"device", 1}}},
      {"!!! Exception during processing !!! Allocation on device ", "cuda-malloc-async", "cuda-malloc-async", {}},
      {"{\"exception_type\": \"torch.OutOfMemoryError\", \"exception_message\": \"Allocation on device 0 would exceed "
       "allowed memory. (out of memory)\\nCurrently allocated     : 9.50 GiB\\nRequested               : 640.00 "
       "MiB\\nDevice limit            : 11.50 GiB\\nFree (according to CUDA): 8.00 MiB\\nPyTorch limit (set by "
       "user-supplied memory fraction)\\n                        : 17179869184.00 GiB\"}",
       "cuda-malloc-async",
       "cuda-malloc-async",
       {{"device", 0},
        {"allocated", 19ull << 29},
        {"requested", 640u << 20},
        {"capacity", 23ull << 29},
        {"free", 8u << 20}}},
      {"torch.OutOfMemoryError: Allocation on device", "cuda-malloc-async", "cuda-malloc-async", {}},
      {"ValueError: To serve at least one request with the models's max seq len (40960), (5.50 GiB KV cache is needed, "
       "which is larger than the available KV cache memory (3.50 GiB).",
       "vllm",
       "vllm-cache-too-small",
       {{"requested", 11ull << 29}, {"free", 7ull << 29}}},
      {"RuntimeError: out of memory within the budget: aten::mm asked for 2.00 GiB (2147483648 bytes); tensors hold "
       "1.00 GiB (1073741824 bytes) live in 1.00 GiB (1073741825 bytes) resident; of the budget of 3.00 GiB "
       "(3221225472 "
       "bytes) the pool may hold 2.50 GiB (2684354560 bytes); a budget of 4.00 GiB (4294967296 bytes) would serve this "
       "request",
       "ullage",
       "ullage",
       {{"requested", 2147483648},
        {"allocated", 1073741824},
        {"reserved", 1073741825},
        {"capacity", 3221225472},
        {"allowed", 2684354560},
        {"needed", 4294967296}}},
  };
  for (const Wording& wording : wordings) {
    const trace::Log log = logged_message(std::string("epoch 1\n") + wording.text + "\nbye\n");
    ASSERT_EQ(log.errors.size(), 1u) << wording.text;
    EXPECT_EQ(name_of(log.errors[0].teller), wording.teller) << wording.text;
    EXPECT_EQ(log.errors[0].form, wording.form) << wording.text;
    EXPECT_EQ(figures_of(log.errors[0]), wording.figures) << wording.text;
    EXPECT_EQ(log.errors[0].line, 2u) << wording.text;
  }
}

// A person's report has no error line. Its verb says that memory did run out; a condition or a possibility does not.
// A logger's level is as good as the word "error" in the line.
TEST(Message, OfALoggersErrorLevelIsAnError) {
  for (const char* text : {"ERROR: not enough memory", "[ERROR] ran out of memory", "CRITICAL insufficient memory",
                           "ERROR: Out of GPU memory"}) {
    const auto log = read_log(text, "test.log");
    EXPECT_TRUE(log.ok() && log->errors.size() == 1) << text;
  }
  const auto log = read_log("INFO: not enough memory for a copy, so the file is mapped", "test.log");
  EXPECT_TRUE(!log.ok() || log->errors.empty());
}

TEST(Message, BehindAProgressBarTellsAKill) {
  for (const char* text : {"Loading checkpoint shards: 33%|###   | 1/3 [00:08<00:17, 8.64s/it]Killed",
                           " 45% \xe2\x96\x95\xe2\x96\x88\xe2\x96\x88\xe2\x96\x8f Killed"}) {
    const auto log = read_log(text, "test.log");
    ASSERT_TRUE(log.ok() && log->errors.size() == 1) << text;
    EXPECT_EQ(log->errors[0].form, "killed");
  }
  const auto log = read_log("see [1] Killed", "test.log");
  EXPECT_TRUE(!log.ok() || log->errors.empty());
}

TEST(Message, AReportOfAPersonCountsIfNothingElseDoes) {
  for (const char* text :
       {"with batch size 38400 i got OOM", "Setting the share to 0.7 would cause OOM on 8 cards",
        "Getting out of memory errors with version 0.3.2", "CUDA OOM during training, after some steps",
        "we hit an OOM error in the second epoch", "a long prompt leads to OOM", "the GPU always says out of memory",
        "\xe8\xae\xad\xe7\xbb\x83\xe6\x97\xb6\xe4\xbc\x9aOOM",  // Chinese: it goes OOM in training
        "\xe8\xae\xad\xe7\xbb\x83 gpt \xe6\x97\xb6\xe7\x88\x86\xe6\x98\xbe\xe5\xad\x98",
        "it spills over into shared GPU memory"}) {
    const auto log = read_log(text, "test.log");
    ASSERT_TRUE(log.ok() && log->errors.size() == 1) << text;
    EXPECT_TRUE(log->errors[0].form.starts_with("plain")) << text;
  }
  for (const char* text :
       {"If you get OOM, lower max_num_seqs.", "This may cause OOM on small cards.", "lower it to avoid OOM errors",
        "with the patch we no longer get OOM", "the zoom got oompah", "Show how to prevent OOM", "CUDA OOMs: 0"}) {
    const auto log = read_log(text, "test.log");
    EXPECT_TRUE(!log.ok() || log->errors.empty()) << text;
  }
  const trace::Log log = logged_message("OOM errors trying to allocate ~86.9 GB on 80 GB GPUs");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].capacity, Bytes{80ull << 30});
  ASSERT_TRUE(log.errors[0].requested);
  EXPECT_GT(*log.errors[0].requested, Bytes{86ull << 30});
}

}  // namespace
}  // namespace ullage::read

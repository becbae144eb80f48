// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/log.h"

#include "read/message_facts.h"
#include "ullage/read/log/log_triggers.h"

#include <gtest/gtest.h>

#include <random>

namespace ullage::read {
namespace {

using trace::Frame;

trace::Log logged(const std::string& text) {
  auto log = read_log(text, "test.log");
  EXPECT_TRUE(log.ok()) << text.substr(0, 2000);
  return log.ok() ? *std::move(log) : trace::Log{};
}

constexpr const char* kError =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.00 GiB "
    "of "
    "which 1.00 GiB is free.";

TEST(Log, WithoutAnErrorIsABadFile) {
  for (const std::string text :
       {"", "\n", "epoch 1 loss 0.5\nepoch 2 loss 0.4\n", "step 5 out of 100\nmemory: 7 GiB of memory allocated\n",
        "CUDA memory allocated: 3.00 GiB, 12.00 MiB free\n", "exit code 0\nexitcode: 1\nexit code 1370\n",
        "  File \"a.py\", line 1, in f\n    if \"out of memory\" in str(error):\n",
        "    except torch.cuda.OutOfMemoryError:\n", "He killed it\n", "Setting PYTORCH_CUDA_ALLOC_CONF\n"}) {
    const auto log = read_log(text, "train.log");
    ASSERT_FALSE(log.ok()) << text;
    EXPECT_EQ(log.error().kind, Error::Kind::BadFile);
    EXPECT_EQ(log.error().where, "train.log");
  }
}

TEST(Log, SaysWhatItLookedForAndInHowMuch) {
  const auto log = read_log("a\nb\nc", "x");
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.error().message.find("in 3 lines"), std::string::npos) << log.error().message;
  EXPECT_NE(log.error().message.find("memory_summary"), std::string::npos);
}

TEST(Log, TellsEachErrorOnceInTheOrderOfTheirFirstLines) {
  const std::string error = kError;
  const std::string other = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`";
  std::string text = "start\n" + error + "\nretry\n" + other + "\n" + error + "\nx\n" + error + "\n" + other + "\n";
  text +=
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.00 "
      "GiB of which 1.00 GiB is free.\n";
  const trace::Log log = logged(text);
  ASSERT_EQ(log.errors.size(), 3u);
  EXPECT_EQ(log.errors[0].repeated, 3u);
  EXPECT_EQ(log.errors[0].line, 2u);
  EXPECT_EQ(log.errors[1].repeated, 2u);
  EXPECT_EQ(log.errors[1].line, 4u);
  EXPECT_EQ(log.errors[2].repeated, 1u);
  EXPECT_EQ(log.errors[2].requested, 3_GiB);
  EXPECT_EQ(log.lines, 9u);
}

TEST(Log, TwoErrorsInOneLineAreTwo) {
  const std::string error = kError;
  const trace::Log log = logged("{\"a\": \"" + error +
                                "\", \"b\": \"HIP out of memory. Tried to allocate 1.00 GiB. GPU 3 "
                                "has a total capacity of 4.00 GiB\", \"c\": \"" +
                                error + "\"}\n");
  ASSERT_EQ(log.errors.size(), 2u);
  EXPECT_EQ(log.errors[0].repeated, 2u);
  EXPECT_EQ(log.errors[0].requested, 2_GiB);
  EXPECT_EQ(log.errors[1].teller, trace::Teller::Hip);
  EXPECT_EQ(log.errors[1].device, 3u);
  EXPECT_EQ(log.errors[1].requested, 1_GiB);
}

TEST(Log, TwoErrorsOfOneKindInOneLineAreTwo) {
  const std::string frame = "HIP out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 4.00 GiB. ";
  const trace::Log log = logged(frame + "HIP out of memory. Tried to allocate 2.00 GiB.\n");
  ASSERT_EQ(log.errors.size(), 2u);
  EXPECT_EQ(log.errors[1].teller, trace::Teller::Hip);
  EXPECT_EQ(log.errors[1].requested, 2_GiB);
}

TEST(Log, KeepsRanksApart) {
  std::string text;
  for (const char* rank : {"0", "1", "0", "12"}) text += "[rank" + std::string(rank) + "]: " + kError + "\n";
  const trace::Log log = logged(text);
  ASSERT_EQ(log.errors.size(), 3u);
  EXPECT_EQ(log.errors[0].rank, 0u);
  EXPECT_EQ(log.errors[0].repeated, 2u);
  EXPECT_EQ(log.errors[1].rank, 1u);
  EXPECT_EQ(log.errors[2].rank, 12u);
}

TEST(Log, RanksAreReadInAllTheirForms) {
  const std::pair<const char*, unsigned> prefixes[] = {{"[rank7]: ", 7},
                                                       {"[7]: ", 7},
                                                       {"[default7]:", 7},
                                                       {"7: ", 7},
                                                       {"[1,7]<stderr>:", 7},
                                                       {"[Rank 7] ", 7},
                                                       {"(Worker rank=7 pid=99) ", 7},
                                                       {"12:34:56 [rank7]: ", 7}};
  for (const auto& [prefix, rank] : prefixes) {
    EXPECT_EQ(logged(std::string(prefix) + kError + "\n").errors.at(0).rank, rank) << prefix;
  }
  for (const char* prefix : {"", "12:34:56 ", "(pid=7) ", "[2025-01-01 10:00:00] ", "ERROR: "}) {
    EXPECT_FALSE(logged(std::string(prefix) + kError + "\n").errors.at(0).rank) << prefix;
  }
}

TEST(Log, KeepsTheTracebackInnermostFirst) {
  for (const std::string prefix : {"", "[rank1]: ", "ERROR 04-01 23:46:56 [engine.py:160] ", "(pid=5) ", "E   "}) {
    std::string text;
    for (const std::string line :
         {"epoch 3", "validation", "Traceback (most recent call last):", "  File \"train.py\", line 10, in <module>",
          "    main()", "  File \"/opt/model file.py\", line 222, in Net.forward", "    y = self.attention(",
          "        ~~~~~~~~~~~~~~~", "        x)", "        ^^", "  File \"<string>\", line 3, in f"}) {
      text += prefix + line + "\n";
    }
    const trace::OutOfMemory error = logged(text + prefix + kError + "\n").errors.at(0);
    EXPECT_EQ(error.traceback,
              (std::vector<Frame>{
                  {"<string>", "f", 3}, {"/opt/model file.py", "Net.forward", 222}, {"train.py", "<module>", 10}}))
        << prefix;
    EXPECT_EQ(error.code, (std::vector<std::string>{"", "y = self.attention(", "main()"})) << prefix;
    ASSERT_EQ(error.before.size(), 2u) << prefix;
    EXPECT_TRUE(error.before[1].ends_with("validation"));
    EXPECT_EQ(error.line, 12u);
  }
}

TEST(Log, TracebacksOfRanksMayBeMixed) {
  std::string text;
  for (const std::string line : {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "    g()",
                                 "  File \"a.py\", line 2, in g", "    h()"}) {
    for (const char* rank : {"[rank0]: ", "[rank1]: "}) text += rank + line + "\n";
  }
  const trace::Log log = logged(text + "[rank0]: " + kError + "\n[rank1]: " + kError + "\n");
  ASSERT_EQ(log.errors.size(), 2u);
  for (const auto& error : log.errors) {
    ASSERT_EQ(error.traceback.size(), 2u);
    EXPECT_EQ(error.traceback[0].function, "g");
    EXPECT_EQ(error.code[0], "h()");
  }
}

TEST(Log, ATracebackBelongsToOneError) {
  const std::string text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n";
  const trace::Log log = logged(text + kError + "\nretry\nRuntimeError: CUDA error: out of memory\n");
  ASSERT_EQ(log.errors.size(), 2u);
  EXPECT_EQ(log.errors[0].traceback.size(), 1u);
  EXPECT_TRUE(log.errors[1].traceback.empty());
}

// vllm-project/vllm#19186, pasted without its upper part.
TEST(Log, TheEndOfATracebackIsRead) {
  const trace::Log log = logged(
      "INFO 06-05 capturing\n"
      "    with torch.cuda.graph(cudagraph, pool=self.graph_pool):\n"
      "  File \"/usr/local/lib/python3.10/site-packages/torch/cuda/graphs.py\", line 186, in __exit__\n"
      "    self.cuda_graph.capture_end()\n"
      "  File \"/usr/local/lib/python3.10/site-packages/torch/cuda/graphs.py\", line 84, in capture_end\n"
      "    super().capture_end()\n"
      "RuntimeError: CUDA error: out of memory\n");
  ASSERT_EQ(log.errors.size(), 1u);
  ASSERT_EQ(log.errors[0].traceback.size(), 2u);
  EXPECT_EQ(log.errors[0].traceback[0].function, "capture_end");
  EXPECT_EQ(log.errors[0].code[1], "self.cuda_graph.capture_end()");
  EXPECT_EQ(log.errors[0].before.size(), 2u);
}

TEST(Log, TracebacksInBoxesAreRead) {
  const std::string bar = "\xe2\x94\x82";
  const std::string text = "step 1\n\xe2\x95\xad\xe2\x94\x80 Traceback (most recent call last) \xe2\x94\x80\n" + bar +
                           " /home/me/train.py:300 in <module>     " + bar + "\n" + bar + "   299     a = 1   " + bar +
                           "\n" + bar + " \xe2\x9d\xb1 300     main()   " + bar + "\n" + bar + "     " + bar + "\n" +
                           bar + " /home/me/model.py:5 in forward   " + bar + "\n\xe2\x95\xb0\xe2\x94\x80\n";
  const trace::OutOfMemory error = logged(text + kError + "\n").errors.at(0);
  EXPECT_EQ(error.traceback,
            (std::vector<Frame>{{"/home/me/model.py", "forward", 5}, {"/home/me/train.py", "<module>", 300}}));
  EXPECT_EQ(error.code, (std::vector<std::string>{"", "main()"}));
  EXPECT_EQ(error.before, (std::vector<std::string>{"step 1"}));
}

TEST(Log, KeepsAtMostTwentyLinesBefore) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "\x1b[32mstep " + std::to_string(i) + "\x1b[0m\n\n";
  const trace::OutOfMemory error = logged(text + kError).errors.at(0);
  ASSERT_EQ(error.before.size(), 20u);
  EXPECT_EQ(error.before.front(), "step 10");
  EXPECT_EQ(error.before.back(), "step 29");
  EXPECT_TRUE(error.traceback.empty());
}

TEST(Log, AByteOrderMarkHidesNoTraceback) {
  const trace::Log log = logged(
      "\xef\xbb\xbfTraceback (most recent call last):\n  File \"train.py\", line 7, in main\n    loss.backward()\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n");
  ASSERT_EQ(log.errors.size(), 1u);
  ASSERT_EQ(log.errors[0].traceback.size(), 1u);
  EXPECT_EQ(log.errors[0].traceback[0].file, "train.py");
}

TEST(Log, ReadsATracebackOfIPython) {
  const trace::Log log = logged(
      "---------------------------------------------------------------------------\n"
      "OutOfMemoryError                          Traceback (most recent call last)\n"
      "Cell In[5], line 3\n      1 model.cuda()\n      2 x = batch()\n----> 3 y = model(x)\n\n"
      "File /opt/x/site-packages/torch/nn/modules/module.py:1518, in Module._call_impl(self, *args, **kwargs)\n"
      "   1516     return self._slow(*args)\n   1517 else:\n-> 1518     return self._call(*args)\n\n"
      "File /home/me/net.py:44, in Net.forward(self, x)\n     43 x = self.a(x)\n---> 44 return self.b(x)\n\n"
      "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n");
  ASSERT_EQ(log.errors.size(), 1u);
  const auto& frames = log.errors[0].traceback;
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].file, "/home/me/net.py");
  EXPECT_EQ(frames[0].function, "Net.forward");
  EXPECT_EQ(frames[0].line, 44u);
  EXPECT_EQ(log.errors[0].code[0], "return self.b(x)");
  EXPECT_EQ(frames[1].line, 1518u);
  EXPECT_EQ(frames[2].file, "<ipython-input>");
  EXPECT_EQ(frames[2].line, 3u);
  EXPECT_EQ(log.errors[0].code[2], "y = model(x)");
}

TEST(Log, ReadsATracebackThatAStringHolds) {
  const trace::Log line = logged(
      R"({"level":"error","log":"Traceback (most recent call last):\n  File \"/app/train.py\", line 9, in step\n    )"
      R"(loss.backward()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."})"
      "\n");
  ASSERT_EQ(line.errors.size(), 1u);
  EXPECT_EQ(line.errors[0].requested, 2_GiB);
  ASSERT_EQ(line.errors[0].traceback.size(), 1u);
  EXPECT_EQ(line.errors[0].traceback[0].file, "/app/train.py");
  EXPECT_EQ(line.errors[0].code[0], "loss.backward()");
  const trace::Log notebook = logged(
      R"x(     "traceback": [
      "\u001b[0;31m-----------\u001b[0m",
      "\u001b[0;31mOutOfMemoryError\u001b[0m                          Traceback (most recent call last)",
      "File \u001b[0;32m/opt/x/net.py:44\u001b[0m, in \u001b[0;36mNet.forward\u001b[0;34m(self, x)\u001b[0m\n\u001b[0;32m---> 44\u001b[0m return self.b(x)\n",
      "\u001b[0;31mOutOfMemoryError\u001b[0m: CUDA out of memory. Tried to allocate 2.00 GiB."
     ])x"
      "\n");
  ASSERT_EQ(notebook.errors.size(), 1u);
  EXPECT_EQ(notebook.errors[0].line, 5u);
  ASSERT_EQ(notebook.errors[0].traceback.size(), 1u);
  EXPECT_EQ(notebook.errors[0].traceback[0].file, "/opt/x/net.py");
  EXPECT_EQ(notebook.errors[0].traceback[0].function, "Net.forward");
}

TEST(Log, KeepsTheLinesBelowAnError) {
  std::string text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
  for (int i = 0; i < 20; ++i) text += "line " + std::to_string(i) + "\n";
  const trace::Log log = logged(text);
  ASSERT_EQ(log.errors[0].after.size(), 10u);
  EXPECT_EQ(log.errors[0].after[0], "line 0");
}

TEST(Log, ReadsTheFiguresOfNcclAndTensorFlow) {
  const auto one = [](const std::string& text) { return logged(text).errors.at(0); };
  EXPECT_EQ(one("node1:12:40 [0] NCCL WARN Failed to CUDA calloc 6291456 bytes\n").requested, Bytes{6291456});
  EXPECT_EQ(one("E stream_executor failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY\n").requested,
            2_GiB);
  EXPECT_EQ(
      one("W bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB (rounded to "
          "1)\n")
          .requested,
      3584_MiB);
  EXPECT_FALSE(read_log("Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB. The caller indicates that "
                        "this is not a failure, but this may mean that there could be performance gains\n",
                        "x")
                   .ok());
}

TEST(Log, FiguresOfTensorFlowAreNoErrorThatReplacesAVagueOne) {
  const std::string figures = "Limit: 1000\nInUse: 900\n";
  const trace::Log alone = logged("error: out of memory\n" + figures);
  ASSERT_EQ(alone.errors.size(), 1u);
  EXPECT_FALSE(alone.errors[0].allocated.has_value());
  const trace::Log between = logged(
      "W bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB (rounded to 1)\n"
      "\n\n\n\n\n\n\nerror: out of memory\n" +
      figures);
  ASSERT_FALSE(between.errors.empty());
  EXPECT_EQ(between.errors[0].allocated, 900_B);
}

TEST(Log, AKillIsToldByWhoNamesItsReason) {
  const auto log = read_log(
      "RuntimeError: DataLoader worker (pid 108439) is killed by signal: Killed.\n"
      "slurmstepd: error: Detected 1 oom_kill event in StepId=10609057.batch.\n"
      "Killed\n",
      "x");
  ASSERT_TRUE(log.ok());
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_EQ(log->errors[0].form, "slurm-oom-kill");
  EXPECT_NE(log->errors[0].text.find("slurmstepd"), std::string::npos);
  EXPECT_EQ(log->errors[0].line, 1u);
}

TEST(Log, OneKillToldInManyWordsIsOneError) {
  const trace::Log log = logged(
      "[10.0] python invoked oom-killer: gfp_mask=0x100cca, order=0\n"
      "[10.1] oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=42,uid=0\n"
      "[10.2] Memory cgroup out of memory: Killed process 42 (python) total-vm:9kB, anon-rss:1024kB, file-rss:0kB, "
      "shmem-rss:0kB\n"
      "[10.3] oom_reaper: reaped process 42 (python)\nKilled\n");
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].process, 1_MiB);
  EXPECT_EQ(log.errors[0].line, 1u);
}

// deepseek-ai/smallpond#2: the first line says no more than that memory ran out.
TEST(Log, AVagueErrorBesideAnExactOneIsNone) {
  const std::string vague = "ERROR RayTaskError(OutOfMemory): out of memory in a task\n";
  const std::string exact = "Out of Memory Error: could not allocate block of size 2.0 GiB (10.2 GiB/10.8 GiB used)\n";
  for (const std::string& text : {vague + exact, exact + vague, vague + "\n" + exact + vague}) {
    const trace::Log log = logged(text);
    ASSERT_EQ(log.errors.size(), 1u) << text;
    EXPECT_EQ(log.errors[0].form, "duckdb-cap") << text;
  }
  EXPECT_EQ(logged(vague).errors.size(), 1u);
  EXPECT_EQ(logged("loading part 7\n" + vague + exact).errors[0].before.front(), "loading part 7");
  EXPECT_EQ(logged(vague + std::string(20, '\n') + exact).errors.size(), 2u) << "too far from each other";
}

TEST(Log, ATracebackThatANotebookKeepsLineByLineIsRead) {
  const trace::Log log = logged(
      "    \"text\": [\n"
      "     \"Traceback (most recent call last):\\n\",\n"
      "     \"  File \\\"train.py\\\", line 7, in step\\n\",\n"
      "     \"    loss.backward()\\n\",\n"
      "     \"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\\n\"\n    ]\n");
  ASSERT_EQ(log.errors.size(), 1u);
  ASSERT_EQ(log.errors[0].traceback.size(), 1u);
  EXPECT_EQ(log.errors[0].traceback[0].file, "train.py");
  EXPECT_EQ(log.errors[0].traceback[0].function, "step");
  EXPECT_EQ(log.errors[0].code[0], "loss.backward()");
}

// TensorFlow names the driver's error behind its own.
TEST(Log, ASecondErrorInALineCountsIfItHasFigures) {
  EXPECT_EQ(logged("failed to alloc 374391296 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n").errors.size(),
            1u);
}

TEST(Log, BadBytesDoNoHarm) {
  std::string text =
      std::string("\xff\xfe\x00\x80 \xe2\x94", 7) + "\n" + kError + std::string("\0\xc3 tail\xff", 8) + "\n";
  const trace::Log log = logged(text);
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].requested, 2_GiB);
  EXPECT_EQ(log.errors[0].text.find('\xff'), std::string::npos);
  EXPECT_EQ(log.errors[0].text.find('\0'), std::string::npos);
}

TEST(Log, RandomBytesGiveAResult) {
  std::mt19937 random(5);
  const std::string words[] = {"out of memory",
                               "\r",
                               "\n",
                               "Tried to allocate ",
                               "\x1b[",
                               "GPU 0",
                               "9",
                               "MiB",
                               "|",
                               "from large pool",
                               "memory summary",
                               "Traceback (most recent call last)",
                               "File \"",
                               "Killed",
                               "\xe2",
                               "[",
                               "]",
                               "(",
                               " "};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      if (random() % 4 != 0) {
        text += words[random() % std::size(words)];
      } else {
        text += static_cast<char>(random());
      }
    }
    (void)read_log(text, "random");
  }
}

TEST(Log, AnEndlessLineIsRead) {
  std::string text(20'000'000, 'x');
  text += std::string(" ") + kError + " ";
  text += std::string(20'000'000, 'y');
  const trace::Log log = logged(text);
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].requested, 2_GiB);
  EXPECT_EQ(log.errors[0].free, 1_GiB);
  EXPECT_LE(log.errors[0].text.size(), 4096u);
  EXPECT_EQ(log.errors[0].line, 1u);
}

// Guards against an endless loop: a message's beginning was rejected (code without figures), then found again from its
// tail.
TEST(Log, ABeginningTurnedDownIsNotFoundAgain) {
  const std::string text =
      "print(1) a: CUDA out of memory\nprint(1) a: Tried to allocate 99999999999999999999999 GiB (GPU 0";
  EXPECT_FALSE(read_log(text, "test.log").ok());  // both lines are code, and neither has a figure
  EXPECT_EQ(logged(text + "\n" + kError).errors.size(), 1u);
}

TEST(Log, AnErrorAnywhereInALongLogIsFound) {
  std::string plain;
  for (int i = 0; i < 20000; ++i) plain += "step " + std::to_string(i) + " loss 0.5 memory 7654 MiB\n";
  const trace::Log log = logged(plain + kError + "\n" + plain);
  ASSERT_EQ(log.errors.size(), 1u);
  EXPECT_EQ(log.errors[0].line, 20001u);
  EXPECT_EQ(log.lines, 40001u);
}

TEST(LogTriggers, AreFoundBehindAnyLengthOfOtherText) {
  const std::string other = "step 12 loss 0.5000 of 7654 memories, kill rate 0.1, tries to go on; ";
  for (std::size_t before = 0; before < 200; ++before) {
    std::string text;
    while (text.size() < before) text += other;
    text.resize(before);
    ASSERT_EQ(find_trigger(text, 0), std::string::npos) << before;
    for (const std::string_view word : {"killed", "sigkill", "out of mem"}) {
      EXPECT_EQ(find_trigger(text + '.' + std::string(word), 0), before + 1) << word;
      EXPECT_EQ(find_trigger(text + '.' + std::string(word) + other + other, 0), before + 1) << word;
    }
  }
}

TEST(LogTriggers, AreFoundWhereverTheyStandAndInAnyCase) {
  for (const std::string_view word : trigger_words()) {
    for (std::size_t before = 0; before < 9; ++before) {
      std::string text = std::string(before, 'z') + std::string(word);
      EXPECT_LE(find_trigger(text, 0), before) << word;
      for (char& c : text) c = static_cast<char>(std::toupper(c));
      EXPECT_LE(find_trigger(text, 0), before) << word;
      EXPECT_EQ(find_trigger(text.substr(0, text.size() - word.size()), 0), std::string::npos);
    }
  }
  EXPECT_EQ(find_trigger("", 0), std::string::npos);
  EXPECT_EQ(find_trigger("abc", 17), std::string::npos);
}

}  // namespace
}  // namespace ullage::read
